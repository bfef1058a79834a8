#include "prompts.h"

#include <array>
#include <cassert>
#include <string>
#include <string_view>

namespace coppice::oracle {
namespace {

// A system message of facts in the words of the built-in model, a question about one of them, and the answer.
struct Conversation {
  std::string before_fact, before_value, up_to_name, whole;  // each begins with the one before
};

Conversation conversation(std::string_view system, int first_value, std::size_t asked) {
  constexpr std::array<std::string_view, 8> names = {"Zorbin", "Velmin", "Kamtor", "Tirgan",
                                                     "Brolo",  "Nuldek", "Paswen", "Grimi"};
  constexpr std::array<std::string_view, 4> attributes = {"code", "room", "badge", "locker"};
  const auto key = [&](std::size_t i) {
    return std::string(attributes[i % attributes.size()]) + " of " + std::string(names[i]);
  };
  const auto fact = [&](std::size_t i) {
    return "The " + key(i) + " is " + std::to_string(first_value + 731 * static_cast<int>(i)) + ".";
  };
  Conversation c;
  std::string text = "<|im_start|>system\n" + std::string(system) + "\n";
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i == asked) {
      c.before_fact = text;
      c.before_value = text + fact(i).substr(0, fact(i).size() - 2);  // all but the last digit
    }
    text += fact(i) + " We saw " + std::to_string(i + 2) + " lamps near the quiet harbor.\n";
  }
  c.up_to_name = text + "Be exact.<|im_end|>\n<|im_start|>user\nWhat is the " + key(asked);
  c.whole = c.up_to_name + "?<|im_end|>\n<|im_start|>assistant\n" + fact(asked) + "<|im_end|>\n";
  return c;
}

std::size_t index(TokenPos pos) { return static_cast<std::size_t>(pos); }

}  // namespace

Prompt make_prompt(const engine::Tokenizer& tokenizer) {
  const auto tokens = [&](const std::string& text) { return tokenizer.tokenize(text, true, true); };
  const auto count = [&](const std::string& text) { return static_cast<TokenPos>(tokens(text).size()); };
  const Conversation ours = conversation("Read the facts with care.", 1234, 4);
  Prompt p;
  p.tokens = tokens(ours.whole);
  p.foreign = tokens(conversation("You are a careful agent. Use the facts and the tools.", 40321, 3).whole);
  p.shared = count(ours.up_to_name);
  p.block = count(ours.before_fact);
  p.value = count(ours.before_value);
  p.compared = p.length() - count(ours.up_to_name + "?<|im_end|>\n<|im_start|>assistant\n");
  assert(p.block <= p.value && p.value < p.block + Prompt::block_size && p.block + Prompt::block_size <= p.shared);
  assert(p.foreign.size() >= p.tokens.size());
  return p;
}

Tokens with_foreign_block(const Prompt& prompt) {
  Tokens out = prompt.tokens;
  for (TokenPos i = prompt.block; i < prompt.block + Prompt::block_size; ++i) out[index(i)] = prompt.foreign[index(i)];
  return out;
}

Tokens with_one_token_changed(const Prompt& prompt) {
  Tokens out = prompt.tokens;
  Token& token = out[index(prompt.value)];
  token = token == prompt.foreign[0] ? prompt.foreign[1] : prompt.foreign[0];
  return out;
}

Tokens without_block(const Prompt& prompt) {
  Tokens out = prompt.tokens;
  const auto block = out.begin() + prompt.block;
  out.erase(block, block + Prompt::block_size);
  return out;
}

Tokens shifted_by_one(const Prompt& prompt) {
  Tokens out = prompt.tokens;
  out.erase(out.begin() + prompt.shared - 1);
  out.insert(out.begin(), prompt.foreign[1]);
  return out;
}

}  // namespace coppice::oracle

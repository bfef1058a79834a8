// How often the prompt of a turn that goes on is guessed right, over the chat templates of llama.cpp's release, with a
// model that writes exactly what the template shows of its answers. Prints the table of docs/testing.md.
#include <gtest/gtest.h>

#include <iostream>
#include <map>

#include "api/scripted_chat.h"
#include "chat/template_core.h"

namespace coppice::api {
namespace {

struct Kind {
  const char* name;
  bool calls, reasons;
  int right_min, wrong_max;  // of all templates, as found
};
constexpr Kind kKinds[] = {{"tool loop", true, false, 32, 2},
                           {"tool loop, reasoning", true, true, 40, 3},
                           {"user turns", false, false, 40, 0},
                           {"user turns, reasoning", false, true, 35, 0}};

enum class Outcome : std::uint8_t {
  right,
  wrong,      // and replaced
  missed,     // no guess, though the prompt goes on from the turn's tokens
  no_turn,    // it does not: the template changes what was said, or shows it in part
  no_ending,  // the template does not show where an answer ends, so there is no turn to try
};
constexpr const char* kOutcomes[] = {"right", "wrong", "missed", "no turn", "no ending"};

// One conversation of one kind.
class Conversation : private ScriptedChat {
 public:
  Conversation(const chat::Templates& templates, Kind kind) : ScriptedChat(templates, kind.calls), kind_(kind) {
    for (int i = 0; i < 2; ++i) {
      body["messages"].push_back(next());
      reply(body["messages"], body["messages"].back());
    }
  }

  // The second turn of ours is the first that can be guessed.
  Outcome run() {
    if (!take_turn(next())) return Outcome::no_ending;
    reply(body["messages"], body["messages"].back());
    if (!ask()) return Outcome::no_ending;
    const bool continued = continues_rightly();
    if (guessed("right")) return Outcome::right;
    if (guessed("wrong")) return Outcome::wrong;
    return continued ? Outcome::missed : Outcome::no_turn;
  }

 private:
  Json next() { return intended(kind_.calls, kind_.reasons); }

  // What the engine was given last must be what rendering the whole gives, guess or not. Whether that goes on from
  // tokens of ours.
  bool continues_rightly() {
    const auto all = whole();
    EXPECT_TRUE(all);
    if (!all) return false;
    EXPECT_EQ(*engine.requests.back().prompt, all->prompts.front());
    return all->continued;
  }

  bool guessed(const std::string& result) {
    return metrics.text().find("coppice_prompt_guesses_total{result=\"" + result + "\"} 1") != std::string::npos;
  }

  const Kind kind_;
};

TEST(GuessedTemplates, B23_NeverAWrongPromptAndMostlyARightGuess) {
  std::map<std::string, std::map<Outcome, int>> counts;  // by kind
  for (const auto& path : template_paths()) {
    SCOPED_TRACE(path.stem().string());
    auto templates =
        chat::make_templates_from_source(template_source(path), "<s>", "</s>", {.prefill_assistant = false});
    ASSERT_TRUE(templates) << templates.error().message;
    std::cout << path.stem().string() << ":";
    for (const Kind& kind : kKinds) {
      const Outcome outcome = Conversation(**templates, kind).run();
      ++counts[kind.name][outcome];
      std::cout << "  " << kind.name << ": " << kOutcomes[static_cast<int>(outcome)];
    }
    std::cout << std::endl;
  }
  for (auto& [kind, count] : counts) {
    std::cout << kind << ":";
    for (int i = 0; i < std::ssize(kOutcomes); ++i) {
      std::cout << "  " << count[static_cast<Outcome>(i)] << " " << kOutcomes[i];
    }
    std::cout << std::endl;
  }
  for (const Kind& kind : kKinds) {
    EXPECT_GE(counts[kind.name][Outcome::right], kind.right_min) << kind.name;
    EXPECT_LE(counts[kind.name][Outcome::wrong], kind.wrong_max) << kind.name;
  }
}

}  // namespace
}  // namespace coppice::api

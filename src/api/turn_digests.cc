#include "api/turn_digests.h"

#include <openssl/evp.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>

#include "api/message_role.h"
#include "base/json.h"
#include "base/json_text.h"

namespace coppice::api {
namespace {

constexpr const char* kSettings[] = {"tool_choice",     "parallel_tool_calls", "response_format",     "json_schema",
                                     "enable_thinking", "reasoning_effort",    "chat_template_kwargs"};

// Digests JSON values without writing them out as text first: prompts are long, and this is done for each request.
class Hasher {
 public:
  Hasher() : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
    if (!context_ || EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) != 1) {
      throw std::runtime_error("SHA-256 is not available");
    }
  }

  // Each value begins with its kind and its length, so that no two values give the same bytes.
  Hasher& add(const Json& value) {
    if (value.is_string()) {
      add_text('s', value.get_ref<const std::string&>());
    } else if (value.is_object()) {
      add_head('o', value.size());
      for (const auto& [key, member] : value.items()) {
        add_text('k', key);
        add(member);
      }
    } else if (value.is_array()) {
      add_head('a', value.size());
      for (const Json& item : value) add(item);
    } else {
      add_text('v', to_text(value));
    }
    return *this;
  }

  TurnDigests::Part finish() {
    TurnDigests::Part out;
    EVP_DigestFinal_ex(context_.get(), out.digest.data(), nullptr);
    out.bytes = static_cast<std::uint32_t>(std::min<std::size_t>(bytes_, std::numeric_limits<std::uint32_t>::max()));
    return out;
  }

 private:
  void add_head(char kind, std::size_t n) {
    std::array<char, 9> head{kind};
    const std::uint64_t wide = n;
    std::memcpy(&head[1], &wide, sizeof wide);
    EVP_DigestUpdate(context_.get(), head.data(), head.size());
  }
  void add_text(char kind, std::string_view text) {
    add_head(kind, text.size());
    EVP_DigestUpdate(context_.get(), text.data(), text.size());
    bytes_ += text.size();
  }

  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_;
  std::size_t bytes_ = 0;
};

TurnDigests::Part digest_field(const Json& body, const char* field) {
  static const Json kNone = nullptr;
  const auto found = body.find(field);
  return Hasher().add(found == body.end() ? kNone : *found).finish();
}

}  // namespace

TurnDigests digest_turn(const Json& body, std::size_t n_prompt_tokens) {
  TurnDigests out;
  out.n_tokens = n_prompt_tokens;
  out.model = digest_field(body, "model");
  out.tools = digest_field(body, "tools");
  Hasher settings;
  for (const char* field : kSettings) {
    if (const auto found = body.find(field); found != body.end()) settings.add(Json(field)).add(*found);
  }
  out.settings = settings.finish();

  Hasher system;
  if (const auto messages = body.find("messages"); messages != body.end() && messages->is_array()) {
    auto message = messages->begin();
    for (; message != messages->end() && is_system(*message); ++message) system.add(*message);
    for (; message != messages->end(); ++message) out.messages.push_back(Hasher().add(*message).finish());
  }
  out.system = system.finish();
  return out;
}

TurnComparison compare_turns(const TurnDigests& before, const TurnDigests& now) {
  const auto [ours, theirs] = std::ranges::mismatch(before.messages, now.messages);
  const bool same_messages = ours == before.messages.end();

  std::uint64_t total = std::uint64_t{before.system.bytes} + before.tools.bytes, common = total;
  for (auto part = before.messages.begin(); part != before.messages.end(); ++part) {
    total += part->bytes;
    if (part < ours) common += part->bytes;
  }

  TurnComparison out;
  if (before.model != now.model) {
    out.change = TurnChange::model;
    common = 0;
  } else if (before.system != now.system) {
    out.change = TurnChange::system;
    common = 0;
  } else if (before.tools != now.tools) {
    out.change = TurnChange::tools;
    common = before.system.bytes;
  } else if (!same_messages) {
    out.change = TurnChange::messages;
  } else if (before.settings != now.settings) {
    out.change = TurnChange::settings;
    common = 0;
  }
  const double share = total == 0 ? 1.0 : static_cast<double>(common) / static_cast<double>(total);
  out.common_tokens = static_cast<std::int64_t>(static_cast<double>(before.n_tokens) * share);
  out.missed_tokens = static_cast<std::int64_t>(before.n_tokens) - out.common_tokens;
  return out;
}

}  // namespace coppice::api

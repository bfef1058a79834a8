// Reads an Anthropic stream back, for tests.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/fakes.h"

namespace coppice::api {

// The data of the stream's events, after checking that each has its "event:" line.
inline std::vector<Json> events_of(const FakeResponder& answer) {
  std::vector<Json> out;
  for (const std::string& record : answer.records()) {
    const auto newline = record.find("\ndata: ");
    if (!record.starts_with("event: ") || newline == std::string::npos) {
      ADD_FAILURE() << "not an event with a name: " << record;
      return out;
    }
    out.push_back(Json::parse(record.substr(newline + 7)));
    EXPECT_EQ(out.back()["type"], record.substr(7, newline - 7));
  }
  return out;
}

// Checks the order of a whole stream's events: message_start; blocks one after the other, counted from 0, each with
// deltas of its own kind; message_delta; message_stop. Pings may come between.
inline void expect_well_formed(const std::vector<Json>& events) {
  enum class State { before, between, in_block, ending, after } state = State::before;
  int n_blocks = 0;
  std::string block;
  for (const Json& event : events) {
    const std::string type = event["type"];
    const std::string shown = event.dump();
    if (type == "ping") continue;
    if (type == "message_start") {
      EXPECT_EQ(state, State::before) << shown;
      state = State::between;
    } else if (type == "content_block_start") {
      EXPECT_EQ(state, State::between) << shown;
      EXPECT_EQ(event["index"], n_blocks) << shown;
      block = event["content_block"]["type"];
      state = State::in_block;
    } else if (type == "content_block_delta") {
      EXPECT_EQ(state, State::in_block) << shown;
      EXPECT_EQ(event["index"], n_blocks) << shown;
      const std::string kind = event["delta"]["type"];
      const bool fits = (block == "text" && kind == "text_delta") ||
                        (block == "tool_use" && kind == "input_json_delta") ||
                        (block == "thinking" && (kind == "thinking_delta" || kind == "signature_delta"));
      EXPECT_TRUE(fits) << shown;
    } else if (type == "content_block_stop") {
      EXPECT_EQ(state, State::in_block) << shown;
      EXPECT_EQ(event["index"], n_blocks++) << shown;
      state = State::between;
    } else if (type == "message_delta") {
      EXPECT_EQ(state, State::between) << shown;
      state = State::ending;
    } else {
      EXPECT_EQ(type, "message_stop") << shown;
      EXPECT_EQ(state, State::ending) << shown;
      state = State::after;
    }
  }
  EXPECT_EQ(state, State::after);
}

// An Anthropic body of one user message, and `fields`.
inline std::string message_with(const std::string& fields) {
  return R"({"max_tokens":9,"messages":[{"role":"user","content":"hi"}])" + (fields.empty() ? "" : "," + fields) + "}";
}

inline std::shared_ptr<FakeResponder> post_message(FakeServer& server, const std::string& fields = "") {
  return server.post("/v1/messages", message_with(fields));
}

// What the engine was given as the i-th request's chat body.
inline const Json& chat_body(const FakeServer& server, std::size_t i = 0) {
  return static_cast<const FakeSampler&>(*server.engine.requests.at(i).sampler).body;
}

}  // namespace coppice::api

// POST /v1/responses as a Chat Completions body, which everything behind it understands. Pure: what was stored comes in
// as an argument.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "api/responses_tools.h"
#include "base/error.h"
#include "base/json.h"

namespace coppice::api {

struct ResponsesRequest {
  Json chat;        // fields that both APIs have, and our own, are as they came
  ToolNames tools;  // what the names in `chat` stand for
  Json input;       // this request's own items: always a list, references resolved
  bool has_instructions = false;
  bool store = true;
};

// An item that was answered or sent earlier, by its id.
using FindItem = std::function<std::optional<Json>(std::string_view id)>;

// `history` is the list of items that the conversation of `previous_response_id` consists of. Errors: invalid_request
// naming the field, also for what this server cannot do (images, stored prompts, background mode); not_found for an
// item that is not stored.
Result<ResponsesRequest> read_responses_request(const Json& body, const Json& history, const FindItem& find_item);

}  // namespace coppice::api

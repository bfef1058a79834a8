#include "api/responses_routes.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "api/cache_diagnostics.h"
#include "api/completion_draft.h"
#include "api/completion_plan.h"
#include "api/errors.h"
#include "api/fields.h"
#include "api/json_text.h"
#include "api/response_store.h"
#include "api/responses_format.h"
#include "api/responses_request.h"

namespace coppice::api {
namespace {

using Stored = std::shared_ptr<const StoredResponse>;

constexpr const char* kInputItems = "/input_items";

Error no_response(std::string_view id) {
  return {ErrorKind::not_found, "Response with id '" + std::string(id) + "' not found.", ""};
}

// Everything that was said up to and with a stored response.
void append_turns(const StoredResponse& stored, bool with_own_output, Json& items) {
  for (const auto& turn : stored.turns) {
    for (Json& item : Json::parse(turn->input)) items.push_back(std::move(item));
    if (turn == stored.turns.back() && !with_own_output) break;
    for (Json& item : Json::parse(turn->output)) items.push_back(std::move(item));
  }
}

// The response that an item of this id belongs to: "msg_STEM_3" -> "resp_STEM".
std::string response_of_item(std::string_view item_id) {
  const std::size_t begin = item_id.find('_'), end = item_id.rfind('_');
  if (begin == std::string_view::npos || begin == end) return {};
  return "resp_" + std::string(item_id.substr(begin + 1, end - begin - 1));
}

std::optional<Json> find_item(ResponseStore& store, NamespaceId ns, std::string_view id) {
  const Stored stored = store.find(ns, response_of_item(id));
  if (!stored) return std::nullopt;
  for (const std::string* side : {&stored->turns.back()->output, &stored->turns.back()->input}) {
    for (Json& item : Json::parse(*side)) {
      if (item.value("id", Json()) == id) return std::move(item);
    }
  }
  return std::nullopt;
}

// Items get an id when they are stored, so that they can be listed and referred to.
Json with_ids(Json items, const std::string& response_id) {
  const std::string stem = response_id.substr(response_id.find('_') + 1);
  for (std::size_t i = 0; i < items.size(); ++i) {
    Json& item = items[i];
    if (!item.contains("type")) item["type"] = "message";
    if (const auto id = item.find("id"); id == item.end() || !id->is_string()) {
      item["id"] = "item_" + stem + "_in" + std::to_string(i);
    }
  }
  return items;
}

// An error of the chat body, by the names that its fields have here.
Error in_our_words(Error error) {
  constexpr std::pair<std::string_view, std::string_view> kNames[] = {{"response_format.json_schema", "text.format"},
                                                                      {"messages", "input"}};
  for (const auto& [theirs, ours] : kNames) {
    if (!error.param.starts_with(theirs)) continue;
    error.param.replace(0, theirs.size(), ours);
    if (const auto at = error.message.find(theirs); at != std::string::npos) {
      error.message.replace(at, theirs.size(), ours);
    }
  }
  return error;
}

// What a response of the store is asked for in a request.
struct Earlier {
  Stored previous;                         // null: the conversation begins here
  std::optional<std::string> compared_id;  // what to compare this request with
  Stored compared;
};

Result<Earlier> find_earlier(const Json& body, NamespaceId ns, ResponseStore& store) {
  Earlier out;
  FieldReader in(body);
  const std::string previous = in.string("previous_response_id", kWordBytesMax);
  if (const Json* options = in.find("prompt_cache_options"); options != nullptr && options->is_object()) {
    FieldReader nested(*options, "prompt_cache_options.");
    if (nested.find("comparison_response_id") != nullptr) {
      out.compared_id = nested.string("comparison_response_id", kWordBytesMax);
    }
    if (nested.error()) return std::unexpected(*nested.error());
  }
  if (in.error()) return std::unexpected(*in.error());
  if (out.compared_id) out.compared = store.find(ns, *out.compared_id);
  if (previous.empty()) return out;
  out.previous = store.find(ns, previous);
  if (!out.previous) {
    return std::unexpected(Error{ErrorKind::not_found, "Previous response with id '" + previous + "' not found.",
                                 "previous_response_id", "previous_response_not_found"});
  }
  return out;
}

// Adds the diagnostics, if they were asked for, and stores the response, if it may be.
class Keeper {
 public:
  Keeper(const Context& context, NamespaceId ns, Earlier earlier, const ResponsesRequest& request)
      : store_(*context.responses), ns_(ns), earlier_(std::move(earlier)), keep_(request.store) {
    if (!keep_ && !earlier_.compared_id) return;
    digest_ = digest_of(context.services.model.id, request.chat, request.has_instructions);
    if (keep_) input_ = request.input;
  }

  void operator()(Json& response, const sched::Report& report) {
    if (earlier_.compared_id) {
      const PromptDigest* compared = earlier_.compared ? &earlier_.compared->digest : nullptr;
      response["prompt_cache_diagnostics"] = cache_diagnostics(compared, digest_, report);
    }
    if (!keep_) return;
    StoredResponse stored;
    stored.id = response["id"].get<std::string>();
    stored.ns = ns_;
    stored.response = to_text(response);
    if (earlier_.previous) stored.turns = earlier_.previous->turns;
    stored.digest = digest_;
    stored.digest.n_tokens = report.prompt_tokens;
    const Json input = with_ids(std::move(input_), stored.id);
    store_.put(std::move(stored), {to_text(input), to_text(response["output"])});
  }

 private:
  ResponseStore& store_;
  NamespaceId ns_;
  Earlier earlier_;
  bool keep_;
  PromptDigest digest_;
  Json input_;
};

// The page of a list of items that the query asks for, newest first unless it says otherwise.
Result<HttpResponse> list_items(Json items, std::string_view query) {
  QueryReader in(query);
  const std::string order = in.string("order", kWordBytesMax), after = in.string("after", kWordBytesMax);
  const auto limit = static_cast<std::size_t>(in.integer("limit", 1, 100, 20));
  if (in.error()) return std::unexpected(*in.error());
  if (order != "asc") std::reverse(items.begin(), items.end());
  const auto has_id = [&](const Json& item) { return item.value("id", Json()) == after; };
  const auto found = after.empty() ? items.end() : std::find_if(items.begin(), items.end(), has_id);
  Json page = Json::array();
  auto at = found == items.end() ? items.begin() : std::next(found);
  for (; at != items.end() && page.size() < limit; ++at) page.push_back(std::move(*at));
  const Json first = page.empty() ? Json(nullptr) : page.front()["id"];
  const Json last = page.empty() ? Json(nullptr) : page.back()["id"];
  const bool has_more = at != items.end();
  return json_response(
      {{"object", "list"}, {"data", std::move(page)}, {"first_id", first}, {"last_id", last}, {"has_more", has_more}});
}

struct Translated {
  NamespaceId ns;
  Earlier earlier;
  ResponsesRequest request;
};

Result<Translated> translate(const Call& call, const Json& body) {
  FieldReader in(body);
  const NamespaceId ns = call.ns(in.string("cache_salt", call.services().limits.cache_salt_bytes_max));
  if (in.error()) return std::unexpected(*in.error());
  ResponseStore& store = *call.context.responses;
  auto earlier = find_earlier(body, ns, store);
  if (!earlier) return std::unexpected(earlier.error());
  Json history = Json::array();
  if (earlier->previous) append_turns(*earlier->previous, true, history);
  auto request = read_responses_request(body, history, [&](std::string_view id) { return find_item(store, ns, id); });
  if (!request) return std::unexpected(request.error());
  return Translated{ns, *std::move(earlier), *std::move(request)};
}

}  // namespace

Result<CompletionPlan> plan_responses(const Call& call) {
  const Services& services = call.services();
  auto body = parse_body(call.http.body);
  if (!body) return std::unexpected(body.error());
  auto read = translate(call, *body);
  if (!read) return std::unexpected(read.error());
  Keeper keeper(call.context, read->ns, std::move(read->earlier), read->request);

  auto draft = read_draft(call, ApiKind::chat, std::move(read->request.chat), Rendering::guess_first);
  if (!draft) return std::unexpected(in_our_words(draft.error()));
  ChatPlan chat = make_chat_plan(services, *std::move(draft), "resp_");
  Json described = describe_request(*body, chat.facts);
  chat.plan.format =
      std::make_unique<ResponsesFormat>(std::move(chat.facts), services.templates, chat.prompt,
                                        std::move(read->request.tools), std::move(described), std::move(keeper));
  return std::move(chat.plan);
}

Result<CompletionDraft> read_responses_draft(const Call& call, const Json& body) {
  auto read = translate(call, body);
  if (!read) return std::unexpected(read.error());
  auto draft = read_draft(call, ApiKind::chat, std::move(read->request.chat));
  if (!draft) return std::unexpected(in_our_words(draft.error()));
  return draft;
}

Result<HttpResponse> get_response(const Call& call) {
  const auto ns = call.query_ns();
  if (!ns) return std::unexpected(ns.error());
  std::string_view id = call.name;
  const bool items_only = id.ends_with(kInputItems);
  if (items_only) id.remove_suffix(std::string_view(kInputItems).size());
  const Stored stored = call.context.responses->find(*ns, id);
  if (!stored) return std::unexpected(no_response(id));
  if (items_only) {
    Json items = Json::array();
    append_turns(*stored, false, items);
    return list_items(std::move(items), call.http.query);
  }
  HttpResponse response;
  response.body = stored->response;
  return response;
}

Result<HttpResponse> delete_response(const Call& call) {
  const auto ns = call.query_ns();
  if (!ns) return std::unexpected(ns.error());
  if (!call.context.responses->erase(*ns, call.name)) return std::unexpected(no_response(call.name));
  return json_response({{"id", call.name}, {"object", "response"}, {"deleted", true}});
}

}  // namespace coppice::api

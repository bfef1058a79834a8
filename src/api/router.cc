#include "api/router.h"

#include <exception>
#include <optional>
#include <string>

#include "api/anthropic_routes.h"
#include "api/cache_routes.h"
#include "api/call.h"
#include "api/completion_routes.h"
#include "api/errors.h"
#include "api/exchange.h"
#include "api/explain_routes.h"
#include "api/inspection.h"
#include "api/model_routes.h"
#include "api/pool_routes.h"
#include "api/responses_routes.h"
#include "api/session_routes.h"
#include "api/text_routes.h"
#include "api/tree_routes.h"
#include "api/warm_routes.h"

namespace coppice::api {
namespace {

using Answering = Result<HttpResponse> (*)(const Call&);
using Planning = Result<CompletionPlan> (*)(const Call&);
using Inspecting = Result<Inspection> (*)(const Call&);

// Exactly one of `answer`, `plan` and `inspect` is set: who answers at once, generates, or asks the engine thread.
struct Route {
  std::string_view method;
  std::string_view path;  // may have "{name}", which stands for as much of a path as there is, slashes included
  Answering answer = nullptr;
  Planning plan = nullptr;
  Inspecting inspect = nullptr;
  bool open = false;  // needs no API key
};

Result<HttpResponse> health(const Call&) { return get_health(); }
Result<HttpResponse> hello(const Call&) { return get_hello(); }
Result<HttpResponse> models(const Call& c) { return get_models(c.services()); }
Result<HttpResponse> props(const Call& c) { return get_props(c.services()); }
Result<HttpResponse> slots(const Call& c) { return get_slots(c.services(), c.http); }
Result<HttpResponse> metrics(const Call& c) { return get_metrics(c.services()); }
Result<HttpResponse> tokenize(const Call& c) { return post_tokenize(c.services(), c.http); }
Result<HttpResponse> detokenize(const Call& c) { return post_detokenize(c.services(), c.http); }
Result<HttpResponse> apply_template(const Call& c) { return post_apply_template(c.services(), c.http); }

constexpr Route kRoutes[] = {
    {.method = "GET", .path = "/health", .answer = health, .open = true},
    {.method = "GET", .path = "/v1/health", .answer = health, .open = true},
    {.method = "GET", .path = "/api/hello", .answer = hello, .open = true},
    {.method = "GET", .path = "/v1/models", .answer = models},
    {.method = "GET", .path = "/v1/models/{name}", .answer = get_model},
    {.method = "GET", .path = "/models", .answer = models},
    {.method = "GET", .path = "/props", .answer = props},
    {.method = "GET", .path = "/slots", .answer = slots},
    {.method = "GET", .path = "/metrics", .answer = metrics},
    {.method = "POST", .path = "/tokenize", .answer = tokenize},
    {.method = "POST", .path = "/detokenize", .answer = detokenize},
    {.method = "POST", .path = "/apply-template", .answer = apply_template},
    {.method = "POST", .path = "/completion", .plan = plan_native},
    {.method = "POST", .path = "/completions", .plan = plan_native},
    {.method = "POST", .path = "/v1/completions", .plan = plan_completions},
    {.method = "POST", .path = "/v1/chat/completions", .plan = plan_chat},
    {.method = "POST", .path = "/chat/completions", .plan = plan_chat},
    {.method = "POST", .path = "/v1/responses", .plan = plan_responses},
    {.method = "POST", .path = "/responses", .plan = plan_responses},
    {.method = "GET", .path = "/v1/responses/{name}", .answer = get_response},
    {.method = "DELETE", .path = "/v1/responses/{name}", .answer = delete_response},
    {.method = "POST", .path = "/v1/messages", .plan = plan_messages},
    {.method = "POST", .path = "/v1/messages/count_tokens", .answer = count_message_tokens},
    {.method = "GET", .path = "/v1/pools", .inspect = list_pools},
    {.method = "POST", .path = "/v1/pools", .plan = plan_pool},
    {.method = "GET", .path = "/v1/pools/{name}", .inspect = get_pool},
    {.method = "DELETE", .path = "/v1/pools/{name}", .inspect = delete_pool},
    {.method = "GET", .path = "/v1/sessions", .inspect = list_sessions},
    {.method = "GET", .path = "/v1/sessions/{name}", .inspect = get_session},
    {.method = "DELETE", .path = "/v1/sessions/{name}", .inspect = delete_session},
    {.method = "POST", .path = "/v1/sessions/{name}/warm", .inspect = post_warm},
    {.method = "POST", .path = "/v1/explain", .inspect = post_explain},
    {.method = "GET", .path = "/v1/tree", .inspect = get_tree},
    {.method = "GET", .path = "/v1/cache", .inspect = get_cache},
    {.method = "POST", .path = "/v1/cache/flush", .inspect = post_cache_flush},
};

constexpr std::string_view kName = "{name}";

// What the path has for {name}; empty for a route without; nothing if it is another path.
std::optional<std::string_view> match(const Route& route, std::string_view path) {
  const std::size_t at = route.path.find(kName);
  if (at == std::string_view::npos) return path == route.path ? std::optional(std::string_view{}) : std::nullopt;
  const std::string_view before = route.path.substr(0, at), after = route.path.substr(at + kName.size());
  const bool long_enough = path.size() > before.size() + after.size();
  if (!long_enough || !path.starts_with(before) || !path.ends_with(after)) return std::nullopt;
  return path.substr(before.size(), path.size() - before.size() - after.size());
}

struct Found {
  const Route* route = nullptr;  // null: none for this path and method
  std::string_view name;
  std::string allowed;  // methods of this path; empty: there is no such path
  bool open = false;    // the path needs no API key
};

Found find_route(std::string_view method, std::string_view path) {
  Found found;
  for (const Route& route : kRoutes) {
    const auto name = match(route, path);
    if (!name) continue;
    const bool get = route.method == "GET";
    found.allowed += std::string(route.method) + (get ? ", HEAD, " : ", ");
    found.open = route.open;
    if (method == route.method || (get && method == "HEAD")) {
      found.route = &route;
      found.name = *name;
    }
  }
  if (!found.allowed.empty()) found.allowed += "OPTIONS";
  return found;
}

HttpResponse options_response(const std::string& allowed) {
  HttpResponse response;
  response.status = 204;
  response.content_type.clear();
  if (!allowed.empty()) response.headers.emplace_back("Allow", allowed);
  return response;
}

HttpResponse no_route(const HttpRequest& request, const std::string& allowed) {
  const ErrorShape shape = error_shape(request);
  if (allowed.empty()) {
    return error_response({ErrorKind::not_found, "there is no route " + request.method + " " + request.path, ""},
                          shape);
  }
  HttpResponse response = error_response(
      {ErrorKind::method_not_allowed, request.path + " takes " + allowed + ", not " + request.method, ""}, shape);
  response.headers.emplace_back("Allow", allowed);
  return response;
}

}  // namespace

Router::Router(Services services) : context_(std::make_shared<const Context>(std::move(services))) {}

Router::~Router() { context_->next_turns.stop(); }

HttpResponse Router::refuse(int status, std::string_view message, std::string_view path) {
  return error_response(status, message, error_shape(path));
}

void Router::handle(HttpRequest request, std::shared_ptr<Responder> responder) {
  try {
    dispatch(request, responder);
  } catch (const std::exception& e) {
    // Out of memory, or a bug: whatever it is, it stays with this request.
    const Error error{ErrorKind::internal, std::string("internal error: ") + e.what(), ""};
    responder->send(error_response(error, error_shape(request)));
  }
}

void Router::dispatch(const HttpRequest& request, const std::shared_ptr<Responder>& responder) const {
  const Found found = find_route(request.method, request.path);
  const auto send_error = [&](const Error& error) { responder->send(error_response(error, error_shape(request))); };
  if (request.method == "OPTIONS") return responder->send(options_response(found.allowed));
  std::string key;
  if (!found.open) {
    auto authorized = context_->keyring.authorize(request);
    if (!authorized) return send_error(authorized.error());
    key = *std::move(authorized);
  }
  if (found.route == nullptr) return responder->send(no_route(request, found.allowed));
  const Call call{*context_, request, key, found.name};
  if (found.route->plan != nullptr) {
    auto plan = found.route->plan(call);
    if (!plan) return send_error(plan.error());
    return Exchange::run(context_, *std::move(plan), responder);
  }
  if (found.route->inspect != nullptr) {
    auto inspection = found.route->inspect(call);
    if (!inspection) return send_error(inspection.error());
    return run_inspection(context_->services.engine, *std::move(inspection), responder);
  }
  auto response = found.route->answer(call);
  if (!response) return send_error(response.error());
  responder->send(*std::move(response));
}

}  // namespace coppice::api

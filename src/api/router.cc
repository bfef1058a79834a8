#include "api/router.h"

#include <algorithm>
#include <exception>
#include <string>

#include "api/completion_routes.h"
#include "api/errors.h"
#include "api/exchange.h"
#include "api/model_routes.h"
#include "api/text_routes.h"

namespace coppice::api {
namespace {

using Answering = Result<HttpResponse> (*)(const Context&, const HttpRequest&);
using Planning = Result<CompletionPlan> (*)(const Context&, const HttpRequest&, std::string_view key);

// Exactly one of `answer` and `plan` is set.
struct Route {
  std::string_view method, path;
  Answering answer = nullptr;
  Planning plan = nullptr;
  bool open = false;  // needs no API key
};

Result<HttpResponse> health(const Context&, const HttpRequest&) { return get_health(); }
Result<HttpResponse> models(const Context& c, const HttpRequest&) { return get_models(c.services); }
Result<HttpResponse> props(const Context& c, const HttpRequest&) { return get_props(c.services); }
Result<HttpResponse> slots(const Context& c, const HttpRequest& r) { return get_slots(c.services, r); }
Result<HttpResponse> metrics(const Context& c, const HttpRequest&) { return get_metrics(c.services); }
Result<HttpResponse> tokenize(const Context& c, const HttpRequest& r) { return post_tokenize(c.services, r); }
Result<HttpResponse> detokenize(const Context& c, const HttpRequest& r) { return post_detokenize(c.services, r); }
Result<HttpResponse> apply_template(const Context& c, const HttpRequest& r) {
  return post_apply_template(c.services, r);
}

constexpr Route kRoutes[] = {
    {.method = "GET", .path = "/health", .answer = health, .open = true},
    {.method = "GET", .path = "/v1/health", .answer = health, .open = true},
    {.method = "GET", .path = "/v1/models", .answer = models},
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
};

const Route* find_route(std::string_view path) {
  const auto* it = std::ranges::find(kRoutes, path, &Route::path);
  return it == std::end(kRoutes) ? nullptr : it;
}

std::string allowed(const Route& route) {
  return route.method == "GET" ? "GET, HEAD, OPTIONS" : std::string(route.method) + ", OPTIONS";
}

bool accepts(const Route& route, std::string_view method) {
  return method == route.method || (method == "HEAD" && route.method == "GET");
}

HttpResponse options_response(const Route* route) {
  HttpResponse response;
  response.status = 204;
  response.content_type.clear();
  if (route != nullptr) response.headers.emplace_back("Allow", allowed(*route));
  return response;
}

}  // namespace

Router::Router(Services services) : context_(std::make_shared<const Context>(std::move(services))) {}

HttpResponse Router::refuse(int status, std::string_view message) { return error_response(status, message); }

void Router::handle(HttpRequest request, std::shared_ptr<Responder> responder) {
  try {
    dispatch(request, responder);
  } catch (const std::exception& e) {
    // Out of memory, or a bug: whatever it is, it stays with this request.
    responder->send(error_response(Error{ErrorKind::internal, std::string("internal error: ") + e.what(), ""}));
  }
}

void Router::dispatch(const HttpRequest& request, const std::shared_ptr<Responder>& responder) const {
  const Route* route = find_route(request.path);
  if (request.method == "OPTIONS") return responder->send(options_response(route));
  std::string key;
  if (route == nullptr || !route->open) {
    auto authorized = context_->keyring.authorize(request);
    if (!authorized) return responder->send(error_response(authorized.error()));
    key = *std::move(authorized);
  }
  if (route == nullptr) {
    return responder->send(
        error_response(Error{ErrorKind::not_found, "there is no route " + request.method + " " + request.path, ""}));
  }
  if (!accepts(*route, request.method)) {
    HttpResponse response = error_response(
        Error{ErrorKind::method_not_allowed, request.path + " takes " + std::string(route->method) + " requests", ""});
    response.headers.emplace_back("Allow", allowed(*route));
    return responder->send(std::move(response));
  }
  if (route->plan != nullptr) {
    auto plan = route->plan(*context_, request, key);
    if (!plan) return responder->send(error_response(plan.error()));
    return Exchange::run(context_, *std::move(plan), responder);
  }
  auto response = route->answer(*context_, request);
  responder->send(response ? *std::move(response) : error_response(response.error()));
}

}  // namespace coppice::api

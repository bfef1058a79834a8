#include "api/errors.h"

#include "api/json_text.h"
#include "base/json.h"

namespace coppice::api {
namespace {

constexpr const char* kRetryAfterS = "1";

struct Shape {
  int status;
  const char* type;
  const char* code;  // "": none
};

Shape shape_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::invalid_request: return {400, "invalid_request_error", ""};
    case ErrorKind::context_overflow: return {400, "invalid_request_error", "context_length_exceeded"};
    case ErrorKind::unauthorized: return {401, "authentication_error", "invalid_api_key"};
    case ErrorKind::not_found: return {404, "not_found_error", ""};
    case ErrorKind::conflict: return {409, "invalid_request_error", "conflict"};
    case ErrorKind::method_not_allowed: return {405, "invalid_request_error", "method_not_allowed"};
    case ErrorKind::too_large: return {413, "invalid_request_error", "request_too_large"};
    case ErrorKind::overloaded: return {503, "overloaded_error", "overloaded"};
    case ErrorKind::unavailable: return {503, "unavailable_error", "unavailable"};
    // A client that left reads nothing; one that is still there was cancelled by the server.
    case ErrorKind::cancelled: return {503, "unavailable_error", "cancelled"};
    case ErrorKind::internal: return {500, "server_error", ""};
  }
  return {500, "server_error", ""};
}

const char* type_of(int status) {
  switch (status) {
    case 401: return "authentication_error";
    case 403: return "permission_error";
    case 404: return "not_found_error";
    case 501: return "not_supported_error";
    case 503: return "unavailable_error";
    default: return status >= 500 ? "server_error" : "invalid_request_error";
  }
}

const char* anthropic_type_of(int status) {
  switch (status) {
    case 401: return "authentication_error";
    case 403: return "permission_error";
    case 404: return "not_found_error";
    case 413:
    case 431: return "request_too_large";
    case 429: return "rate_limit_error";
    case 503: return "overloaded_error";
    default: return status >= 500 ? "api_error" : "invalid_request_error";
  }
}

Json anthropic_json(std::string_view message, int status) {
  return {{"type", "error"}, {"error", {{"type", anthropic_type_of(status)}, {"message", message}}}};
}

Json make_json(std::string_view message, const char* type, std::string_view param, std::string_view code) {
  return {{"error",
           {{"message", message},
            {"type", type},
            {"param", param.empty() ? Json(nullptr) : Json(param)},
            {"code", code.empty() ? Json(nullptr) : Json(code)}}}};
}

}  // namespace

int http_status(ErrorKind kind) { return shape_of(kind).status; }

ErrorShape error_shape(std::string_view path) {
  constexpr std::string_view kMessages = "/v1/messages", kHello = "/api/hello";
  const bool messages =
      path.starts_with(kMessages) && (path.size() == kMessages.size() || path[kMessages.size()] == '/');
  return messages || path == kHello ? ErrorShape::anthropic : ErrorShape::openai;
}

ErrorShape error_shape(const HttpRequest& request) {
  const bool shared = request.path.starts_with("/v1/models");
  if (shared && !request.header("anthropic-version").empty()) return ErrorShape::anthropic;
  return error_shape(std::string_view(request.path));
}

Json error_json(const Error& error, ErrorShape shape) {
  if (shape == ErrorShape::anthropic) return anthropic_json(error.message, http_status(error.kind));
  const Shape words = shape_of(error.kind);
  return make_json(error.message, words.type, error.param,
                   error.code.empty() ? std::string_view(words.code) : error.code);
}

HttpResponse error_response(const Error& error, ErrorShape shape) {
  HttpResponse response = json_response(error_json(error, shape));
  response.status = http_status(error.kind);
  if (error.kind == ErrorKind::overloaded) response.headers.emplace_back("Retry-After", kRetryAfterS);
  if (error.kind == ErrorKind::unauthorized) response.headers.emplace_back("WWW-Authenticate", "Bearer");
  return response;
}

HttpResponse error_response(int status, std::string_view message, ErrorShape shape) {
  HttpResponse response = json_response(shape == ErrorShape::anthropic ? anthropic_json(message, status)
                                                                       : make_json(message, type_of(status), "", ""));
  response.status = status;
  if (status == 503) response.headers.emplace_back("Retry-After", kRetryAfterS);
  return response;
}

Error context_overflow(std::size_t n_prompt, std::int32_t n_ctx) {
  const std::string n = std::to_string(n_prompt), m = std::to_string(n_ctx);
  return {ErrorKind::context_overflow,
          "prompt is too long: " + n + " tokens > " + m + " maximum. This model's maximum context length is " + m +
              " tokens, of which the answer needs at least one.",
          "prompt"};
}

HttpResponse json_response(const Json& body) {
  HttpResponse response;
  response.body = to_text(body);
  return response;
}

}  // namespace coppice::api

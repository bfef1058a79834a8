// Errors as HTTP answers, in the shape that the clients of a path read.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "api/http.h"
#include "base/error.h"
#include "base/json_fwd.h"

namespace coppice::api {

enum class ErrorShape : std::uint8_t {
  openai,     // {"error":{"message","type","param","code"}}
  anthropic,  // {"type":"error","error":{"type","message"}}
};

// By the path alone, and, for paths that both kinds of clients use, by the header "anthropic-version".
ErrorShape error_shape(std::string_view path);
ErrorShape error_shape(const HttpRequest& request);

int http_status(ErrorKind kind);

// The error's object; also what a stream that has begun says before it ends.
Json error_json(const Error& error, ErrorShape shape = ErrorShape::openai);

HttpResponse error_response(const Error& error, ErrorShape shape = ErrorShape::openai);

// For a status that no ErrorKind stands for (408, 431, 501, ...).
HttpResponse error_response(int status, std::string_view message, ErrorShape shape = ErrorShape::openai);

// Holds both phrases by which clients recognise a full context and compact their conversation.
Error context_overflow(std::size_t n_prompt, std::int32_t n_ctx);

HttpResponse json_response(const Json& body);

}  // namespace coppice::api

// Errors as HTTP answers, in the shape that OpenAI clients read: {"error":{"message","type","param","code"}}.
#pragma once

#include <string>
#include <string_view>

#include "api/http.h"
#include "base/error.h"
#include "base/json_fwd.h"

namespace coppice::api {

int http_status(ErrorKind kind);

// The {"error": ...} object; also what a stream that has begun says before it ends.
Json error_json(const Error& error);

HttpResponse error_response(const Error& error);

// For a status that no ErrorKind stands for (408, 431, 501, ...).
HttpResponse error_response(int status, std::string_view message);

// Holds both phrases by which clients recognise a full context and compact their conversation.
Error context_overflow(std::size_t n_prompt, std::int32_t n_ctx);

HttpResponse json_response(const Json& body);

}  // namespace coppice::api

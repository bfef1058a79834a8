// The routes that turn text into tokens and back: POST /tokenize, /detokenize, /apply-template.
#pragma once

#include "api/context.h"
#include "api/http.h"
#include "base/error.h"

namespace coppice::api {

Result<HttpResponse> post_tokenize(const Services& services, const HttpRequest& request);
Result<HttpResponse> post_detokenize(const Services& services, const HttpRequest& request);
Result<HttpResponse> post_apply_template(const Services& services, const HttpRequest& request);

}  // namespace coppice::api

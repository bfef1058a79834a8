// The routes that tell about the server: GET /health, /v1/models, /props, /slots, /metrics.
#pragma once

#include "api/call.h"
#include "api/http.h"

namespace coppice::api {

HttpResponse get_health();
// Models have the fields of both OpenAI's and Anthropic's API.
HttpResponse get_models(const Services& services);
Result<HttpResponse> get_model(const Call& call);  // by its id or an alias; errors: not_found
HttpResponse get_props(const Services& services);
HttpResponse get_slots(const Services& services,
                       const HttpRequest& request);  // ?fail_on_no_slot=1: 503 when all are busy
HttpResponse get_metrics(const Services& services);

}  // namespace coppice::api

// The routes that tell about the server: GET /health, /v1/models, /props, /slots, /metrics.
#pragma once

#include "api/context.h"
#include "api/http.h"

namespace coppice::api {

HttpResponse get_health();
HttpResponse get_models(const Services& services);
HttpResponse get_props(const Services& services);
HttpResponse get_slots(const Services& services,
                       const HttpRequest& request);  // ?fail_on_no_slot=1: 503 when all are busy
HttpResponse get_metrics(const Services& services);

}  // namespace coppice::api

#include "app/loading_gate.h"

#include <utility>

#include "api/errors.h"

namespace coppice::app {

void LoadingGate::handle(api::HttpRequest request, std::shared_ptr<api::Responder> responder) {
  if (api::Handler* handler = handler_.load(std::memory_order_acquire)) {
    handler->handle(std::move(request), std::move(responder));
    return;
  }
  api::HttpResponse response = api::error_response(Error{ErrorKind::unavailable, "Loading model", {}});
  responder->send(std::move(response));
}

api::HttpResponse LoadingGate::refuse(int status, std::string_view message) {
  if (api::Handler* handler = handler_.load(std::memory_order_acquire)) return handler->refuse(status, message);
  return api::error_response(status, message);
}

}  // namespace coppice::app

#include "app/loading_gate.h"

#include <utility>

#include "api/errors.h"

namespace coppice::app {

void LoadingGate::handle(api::HttpRequest request, std::shared_ptr<api::Responder> responder) {
  if (api::Handler* handler = handler_.load(std::memory_order_acquire)) {
    handler->handle(std::move(request), std::move(responder));
    return;
  }
  const Error loading{ErrorKind::unavailable, "Loading model", {}};
  responder->send(api::error_response(loading, api::error_shape(request)));
}

api::HttpResponse LoadingGate::refuse(int status, std::string_view message, std::string_view path) {
  if (api::Handler* handler = handler_.load(std::memory_order_acquire)) return handler->refuse(status, message, path);
  return api::error_response(status, message, api::error_shape(path));
}

}  // namespace coppice::app

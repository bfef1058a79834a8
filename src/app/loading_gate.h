// Answers 503 "loading" until the model is there, then hands every request to the router. So the port is taken, and a
// wrong one reported, before minutes are spent on loading; and probes see a server that is not ready yet.
//
// Threading: handle() and refuse() on any thread. open() once; `handler` must outlive the gate's last use.
#pragma once

#include <atomic>

#include "api/http.h"

namespace coppice::app {

class LoadingGate final : public api::Handler {
 public:
  void open(api::Handler& handler) { handler_.store(&handler, std::memory_order_release); }

  void handle(api::HttpRequest request, std::shared_ptr<api::Responder> responder) override;
  api::HttpResponse refuse(int status, std::string_view message, std::string_view path) override;

 private:
  std::atomic<api::Handler*> handler_{nullptr};
};

}  // namespace coppice::app

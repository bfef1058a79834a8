// The server's routes: finds the handler for a request, checks the API key, turns errors into answers.
//
// Owner: app/. Threading: immutable after construction; handle() may run on any number of threads. What `services`
// refers to must outlive the router and every exchange that it began.
#pragma once

#include <memory>

#include "api/context.h"
#include "api/http.h"
#include "api/services.h"

namespace coppice::api {

class Router final : public Handler {
 public:
  explicit Router(Services services);
  ~Router() override;  // ends what the context does by itself
  Router(const Router&) = delete;
  Router& operator=(const Router&) = delete;

  void handle(HttpRequest request, std::shared_ptr<Responder> responder) override;
  HttpResponse refuse(int status, std::string_view message, std::string_view path) override;

  const std::shared_ptr<const Context>& context() const { return context_; }

 private:
  void dispatch(const HttpRequest& request, const std::shared_ptr<Responder>& responder) const;

  const std::shared_ptr<const Context> context_;
};

}  // namespace coppice::api

#include "net/context.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>

#include <boost/asio/post.hpp>
#include <mutex>

#include "obs/log.h"
#include "obs/metrics.h"

namespace coppice::net {

Context::Context(ServerOptions server_options, api::Handler& api_handler, obs::Metrics* server_metrics)
    : options(std::move(server_options)),
      handler(api_handler),
      connections(options.connections_max),
      metrics_(server_metrics) {}

void Context::post(const Strand& strand, std::function<void()> task) {
  std::shared_lock lock(gate_);
  if (!ended_) asio::post(strand, std::move(task));
}

void Context::end_tasks() {
  std::unique_lock lock(gate_);
  ended_ = true;
}

api::HttpResponse Context::refusal(int status, std::string_view message, std::string_view path) noexcept {
  try {
    return handler.refuse(status, message, path);
  } catch (const std::exception& error) {
    obs::log_error("refusal failed", "status={} error={}", status, error.what());
  } catch (...) {
    obs::log_error("refusal failed", "status={}", status);
  }
  return api::HttpResponse{.status = status, .content_type = "text/plain", .headers = {}, .body = {}};
}

void Context::count_response(int status) {
  if (metrics_ != nullptr) metrics_->count_http(status);
}

void Context::count_dropped_stream() {
  if (metrics_ != nullptr) metrics_->streams_dropped.Increment();
}

void Context::count_connection(int change) {
  if (metrics_ != nullptr) metrics_->connections_open.Increment(change);
}

}  // namespace coppice::net

// HTTP as the api layer sees it: a request as data, a way back to the client. net/ implements Responder; tests fake it.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace coppice::api {

struct HttpRequest {
  std::string method;                          // "GET", "POST", ...
  std::string path;                            // decoded, without the query string
  std::string query;                           // raw, without '?'
  std::map<std::string, std::string> headers;  // names in lower case; the last value wins
  std::string body;

  std::string_view header(std::string_view name) const {
    auto it = headers.find(std::string(name));
    return it == headers.end() ? std::string_view{} : std::string_view{it->second};
  }
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json; charset=utf-8";
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
};

// The way back to one client for one exchange. All methods are thread-safe and never block. Either send() once, or
// start_stream(), any number of write()s, finish(). Calls after the client has gone do nothing.
class Responder {
 public:
  virtual ~Responder() = default;
  virtual void send(HttpResponse response) = 0;

  // Sends status 200 and the headers at once, chunked transfer.
  virtual void start_stream(std::string content_type) = 0;
  // Queues bytes. False once the client is gone or has let more than the stream limit pile up (it is then
  // disconnected).
  virtual bool write(std::string bytes) = 0;
  virtual void finish() = 0;
  // While a stream is open, writes what `make` returns (a whole SSE record) whenever nothing was written for
  // `interval`. `make` runs like a posted task. Call after start_stream(); interval <= 0 or finish() ends it. May be
  // left unimplemented.
  virtual void set_keepalive(std::function<std::string()> make, std::chrono::seconds interval) {
    (void)make, (void)interval;
  }

  // Runs `task` on a server thread, after all earlier tasks of this exchange and never beside another of them.
  virtual void post(std::function<void()> task) = 0;
  // `callback` runs (like a posted task) at most once, if the client goes away before send() or finish().
  virtual void on_gone(std::function<void()> callback) = 0;
};

// Answers requests. handle() runs on a server thread as a task of the exchange; it may keep the responder.
class Handler {
 public:
  virtual ~Handler() = default;
  virtual void handle(HttpRequest request, std::shared_ptr<Responder> responder) = 0;
  // The answer to what net/ itself must refuse (bad HTTP, body over the limit, ...), in the shape of the API that
  // `path` belongs to; it is empty where the request did not come that far.
  virtual HttpResponse refuse(int status, std::string_view message, std::string_view path) = 0;
};

}  // namespace coppice::api

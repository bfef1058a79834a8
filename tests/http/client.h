// A small blocking HTTP/1.1 client: one connection per request, whole responses or server-sent events as they come.
//
// A Client may be used from several threads at once, a Stream from one. Nothing blocks longer than kSilenceMax; then
// the request counts as failed (status 0, or a stream that is not complete).
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"

namespace coppice::http_test {

constexpr std::chrono::seconds kSilenceMax{60};

using Headers = std::vector<std::pair<std::string, std::string>>;

struct Response {
  int status = 0;                              // 0: no answer
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
  bool complete = false;  // all of the body came, with its proper end

  Json json() const { return Json::parse(body, nullptr, false); }
};

// One connection with one request on it. Closing it early is how a client goes away.
class Stream {
 public:
  Stream(std::uint16_t port, std::string_view request);
  ~Stream() { close(); }
  Stream(Stream&& other) noexcept;
  Stream& operator=(Stream&&) = delete;

  int status() const { return head_.status; }  // 0: no answer
  const Response& head() const { return head_; }

  // The data of the next event; nothing at the end. Comments are skipped.
  std::optional<std::string> next();
  // The next event that is JSON; null at the end and at "[DONE]".
  Json next_json();

  bool done() const { return done_; }          // "[DONE]" came
  bool complete() const { return complete_; }  // the body has its proper end
  std::string rest();                          // everything that is still to come of the body
  void close();

 private:
  bool receive();                     // more raw bytes; false at the end of the connection
  bool read_line(std::string& line);  // without CRLF
  bool read_body();                   // more body bytes; false at the end of the body
  void read_head();

  int fd_ = -1;
  std::string raw_, body_;
  Response head_;
  bool chunked_ = false, done_ = false, complete_ = false, ended_ = false;
  std::optional<std::size_t> left_;  // of a body with a known length
};

class Client {
 public:
  explicit Client(std::uint16_t port) : port_(port) {}

  Response get(const std::string& path) const { return request("GET", path); }
  Response post(const std::string& path, const Json& body, const Headers& headers = {}) const;
  Response request(std::string_view method, const std::string& path, std::string_view body = "",
                   const Headers& headers = {}) const;
  // POSTs the body with "stream": true.
  Stream stream(const std::string& path, Json body) const;

  // post(), which must succeed: a test failure and null otherwise.
  Json ask(const std::string& path, const Json& body) const;

 private:
  std::uint16_t port_;
};

}  // namespace coppice::http_test

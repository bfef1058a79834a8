// One HTTP/1.1 request on a connection of its own, the body of its answer as it arrives.
//
// Threading: blocks the calling thread; independent requests may run on any number of threads.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

#include "client/url.h"
#include "result.h"

namespace coppice::bench {

struct HttpRequest {
  std::string method = "GET", path, body;          // a body is JSON
  std::chrono::milliseconds silence_max{600'000};  // fails when nothing came for so long
};

// Called with each piece of the body.
using BodySink = std::function<void(std::string_view)>;

// The status code. An error if there was no whole answer.
Result<int> send(const Url& server, const HttpRequest& request, const BodySink& sink);

struct HttpAnswer {
  int status = 0;
  std::string body;
};

Result<HttpAnswer> fetch(const Url& server, const HttpRequest& request);

}  // namespace coppice::bench

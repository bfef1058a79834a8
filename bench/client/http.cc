#include "client/http.h"

#include <array>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>

namespace coppice::bench {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;

// Asynchronous operations one after the other, as only those keep to a time limit.
class Connection {
 public:
  Connection(const Url& server, const HttpRequest& request) : server_(server), request_(request) {}

  Result<int> run(const BodySink& sink) {
    if (error_code ec = connect()) return fail("connect to", ec);
    if (error_code ec = write()) return fail("send to", ec);
    http::response_parser<http::buffer_body> parser;
    parser.body_limit(boost::none);
    if (error_code ec = read_header(parser)) return fail("read the answer of", ec);
    if (error_code ec = read_body(parser, sink)) return fail("read the answer of", ec);
    return static_cast<int>(parser.get().result_int());
  }

 private:
  std::unexpected<std::string> fail(std::string_view what, error_code ec) const {
    return std::unexpected("cannot " + std::string(what) + " " + server_.host + ":" + server_.port + request_.path +
                           ": " + ec.message());
  }

  // Starts an operation with a handler and runs it to its end.
  template <class Start>
  error_code wait(Start start) {
    error_code result;
    stream_.expires_after(request_.silence_max);
    start([&result](error_code ec, auto&&...) { result = ec; });
    context_.restart();
    context_.run();
    return result;
  }

  error_code connect() {
    error_code ec;
    asio::ip::tcp::resolver resolver(context_);
    const auto found = resolver.resolve(server_.host, server_.port, ec);
    if (ec) return ec;
    ec = wait([&](auto handler) { stream_.async_connect(found, handler); });
    if (!ec) stream_.socket().set_option(asio::ip::tcp::no_delay(true), ec);
    return ec;
  }

  error_code write() {
    http::request<http::string_body> message(http::string_to_verb(request_.method), server_.base + request_.path, 11);
    message.set(http::field::host, server_.host + ":" + server_.port);
    message.set(http::field::connection, "close");
    if (!request_.body.empty()) message.set(http::field::content_type, "application/json");
    message.body() = request_.body;
    message.prepare_payload();
    return wait([&](auto handler) { http::async_write(stream_, message, handler); });
  }

  error_code read_header(http::response_parser<http::buffer_body>& parser) {
    return wait([&](auto handler) { http::async_read_header(stream_, buffer_, parser, handler); });
  }

  error_code read_body(http::response_parser<http::buffer_body>& parser, const BodySink& sink) {
    std::array<char, 64 << 10> piece{};
    while (!parser.is_done()) {
      parser.get().body().data = piece.data();
      parser.get().body().size = piece.size();
      const error_code ec = wait([&](auto handler) { http::async_read_some(stream_, buffer_, parser, handler); });
      if (ec && ec != http::error::need_buffer) return ec;
      const std::size_t n = piece.size() - parser.get().body().size;
      if (n > 0) sink(std::string_view(piece.data(), n));
    }
    return {};
  }

  const Url& server_;
  const HttpRequest& request_;
  asio::io_context context_{1};
  boost::beast::tcp_stream stream_{context_};
  boost::beast::flat_buffer buffer_;
};

}  // namespace

Result<int> send(const Url& server, const HttpRequest& request, const BodySink& sink) try {
  return Connection(server, request).run(sink);
} catch (const std::exception& e) {
  return std::unexpected(std::string("HTTP client: ") + e.what());
}

Result<HttpAnswer> fetch(const Url& server, const HttpRequest& request) {
  HttpAnswer answer;
  const Result<int> status = send(server, request, [&](std::string_view bytes) { answer.body += bytes; });
  if (!status) return std::unexpected(status.error());
  answer.status = *status;
  return answer;
}

}  // namespace coppice::bench

#include "net/request_parser.h"

#include <boost/beast/http/error.hpp>

#include "net/http_text.h"

namespace coppice::net {
namespace http = boost::beast::http;

namespace {

std::string_view view(boost::beast::string_view text) { return {text.data(), text.size()}; }

}  // namespace

Result<api::HttpRequest> to_request(RequestParser& parser) {
  auto& message = parser.get();
  auto target = parse_target(view(message.target()));
  if (!target) return std::unexpected(target.error());
  api::HttpRequest request;
  request.method = view(message.method_string());
  request.path = std::move(target->path);
  request.query = std::move(target->query);
  for (const auto& field : message) {
    request.headers.insert_or_assign(to_lower(view(field.name_string())), std::string(view(field.value())));
  }
  request.body = std::move(message.body());
  return request;
}

bool expects_continue(const RequestParser& parser) {
  const auto& message = parser.get();
  return message.version() >= 11 && boost::beast::iequals(message[http::field::expect], "100-continue");
}

Refusal refusal_of(boost::system::error_code error, bool reading_head, const ServerOptions& options) {
  const std::string head_limit =
      "The request line and headers are over the limit of " + std::to_string(options.header_bytes_max) + " bytes.";
  if (error == http::error::end_of_stream) return {};
  if (error == http::error::header_limit) return {431, head_limit};
  if (error == http::error::buffer_overflow && reading_head) return {431, head_limit};
  if (error == http::error::body_limit) {
    return {413, "The request body is over the limit of " + std::to_string(options.body_bytes_max) + " bytes."};
  }
  if (error == http::error::partial_message) return {400, "The request ended before it was complete."};
  if (error.category() == make_error_code(http::error::bad_method).category()) {
    return {400, "The request is not valid HTTP/1.1: " + error.message() + "."};
  }
  return {};  // the connection failed
}

}  // namespace coppice::net

#include "net/http_text.h"

#include <boost/beast/http/status.hpp>
#include <cassert>
#include <charconv>

#include "base/percent.h"

namespace coppice::net {
namespace {

// A line break inside a value would let whoever chose it write headers of their own.
void append_header(std::string& out, std::string_view name, std::string_view value) {
  const auto append_clean = [&out](std::string_view text) {
    for (char c : text) out += (c == '\r' || c == '\n' || c == '\0') ? ' ' : c;
  };
  append_clean(name);
  out += ": ";
  append_clean(value);
  out += "\r\n";
}

void append_status_line(std::string& out, int status) {
  const auto reason = boost::beast::http::obsolete_reason(static_cast<boost::beast::http::status>(status));
  out += "HTTP/1.1 ";
  out += std::to_string(status);
  out += ' ';
  out.append(reason.data(), reason.size());
  out += "\r\n";
}

void append_connection(std::string& out, bool keep_alive) {
  append_header(out, "Connection", keep_alive ? "keep-alive" : "close");
}

bool has_body(int status) { return status >= 200 && status != 204 && status != 304; }

}  // namespace

std::string to_lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

Result<std::string> percent_decode(std::string_view text) {
  auto decoded = decode_percent(text);
  if (!decoded) return invalid("The path has a '%' that two hexadecimal digits do not follow.");
  if (decoded->find('\0') != std::string::npos) return invalid("The path must not contain %00.");
  return *std::move(decoded);
}

Result<Target> parse_target(std::string_view target) {
  if (!target.starts_with('/') && target != "*") {
    const auto scheme_end = target.find("://");
    if (scheme_end == std::string_view::npos) return invalid("The request target must be a path that starts with '/'.");
    const auto path_start = target.find_first_of("/?", scheme_end + 3);
    target = path_start == std::string_view::npos ? std::string_view{} : target.substr(path_start);
  }
  const auto mark = target.find('?');
  auto path = percent_decode(target.substr(0, mark));
  if (!path) return std::unexpected(path.error());
  if (path->empty()) path->push_back('/');
  return Target{std::move(*path), mark == std::string_view::npos ? "" : std::string(target.substr(mark + 1))};
}

std::string encode_response(const api::HttpResponse& response, bool keep_alive, bool head_only) {
  const bool with_body = has_body(response.status);
  std::string out;
  out.reserve(256 + response.body.size());
  append_status_line(out, response.status);
  if (with_body) append_header(out, "Content-Type", response.content_type);
  for (const auto& [name, value] : response.headers) append_header(out, name, value);
  if (with_body) append_header(out, "Content-Length", std::to_string(response.body.size()));
  append_connection(out, keep_alive);
  out += "\r\n";
  if (with_body && !head_only) out += response.body;
  return out;
}

std::string encode_stream_head(std::string_view content_type, bool chunked, bool keep_alive) {
  std::string out;
  append_status_line(out, 200);
  append_header(out, "Content-Type", content_type);
  append_header(out, "Cache-Control", "no-cache");
  append_header(out, "X-Accel-Buffering", "no");  // asks nginx in between to pass each event on at once
  if (chunked) append_header(out, "Transfer-Encoding", "chunked");
  append_connection(out, keep_alive);
  out += "\r\n";
  return out;
}

void append_chunk(std::string& out, std::string_view bytes) {
  assert(!bytes.empty());
  char size[2 * sizeof(std::size_t)];
  const auto end = std::to_chars(std::begin(size), std::end(size), bytes.size(), 16).ptr;
  out.append(size, end);
  out += "\r\n";
  out += bytes;
  out += "\r\n";
}

}  // namespace coppice::net

// HTTP/1.1 as text: request targets in, response heads and chunks out. Pure functions; no sockets, no Boost.
#pragma once

#include <string>
#include <string_view>

#include "api/http.h"
#include "base/error.h"

namespace coppice::net {

struct Target {
  std::string path;   // decoded
  std::string query;  // raw, without '?'
};

// Takes the origin form ("/v1/models?x=1"), the absolute form ("http://host/v1/models") and "*".
Result<Target> parse_target(std::string_view target);

// "%41" -> "A". Refuses "%", "%4", "%zz" and "%00".
Result<std::string> percent_decode(std::string_view text);

// The whole response; without its body for HEAD (the length then still tells the body's).
std::string encode_response(const api::HttpResponse& response, bool keep_alive, bool head_only);

// The head of a streamed response with status 200. Not chunked: it ends when the connection closes (HTTP/1.0).
std::string encode_stream_head(std::string_view content_type, bool chunked, bool keep_alive);

// REQUIRES: `bytes` is not empty (an empty chunk would end the stream).
void append_chunk(std::string& out, std::string_view bytes);
inline constexpr std::string_view kLastChunk = "0\r\n\r\n";

std::string to_lower(std::string_view text);  // ASCII

}  // namespace coppice::net

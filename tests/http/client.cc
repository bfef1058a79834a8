#include "client.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

namespace coppice::http_test {
namespace {

int connect_to(std::uint16_t port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  const timeval silence{.tv_sec = kSilenceMax.count(), .tv_usec = 0};
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &silence, sizeof silence);
  ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &silence, sizeof silence);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    ::close(fd);
    return -1;
  }
  return fd;
}

// A server that refuses a body early may close before all of it is sent; its answer is still read.
void send_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n <= 0) return;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
}

std::string request_text(std::string_view method, const std::string& path, std::string_view body,
                         const Headers& headers) {
  std::string text = std::string(method) + " " + path + " HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n";
  for (const auto& [name, value] : headers) text += name + ": " + value + "\r\n";
  if (!body.empty() || method == "POST") {
    text += "Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) + "\r\n";
  }
  return text.append("\r\n").append(body);
}

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

std::size_t to_size(std::string_view text, int base) {
  std::size_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value, base);
  return value;
}

}  // namespace

Stream::Stream(std::uint16_t port, std::string_view request) : fd_(connect_to(port)) {
  if (fd_ < 0) {
    ended_ = true;
    return;
  }
  send_all(fd_, request);
  read_head();
}

Stream::Stream(Stream&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      raw_(std::move(other.raw_)),
      body_(std::move(other.body_)),
      head_(std::move(other.head_)),
      chunked_(other.chunked_),
      done_(other.done_),
      complete_(other.complete_),
      ended_(other.ended_),
      left_(other.left_) {}

void Stream::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
  ended_ = true;
}

bool Stream::receive() {
  std::array<char, 16384> buffer{};
  if (fd_ < 0) return false;
  const ssize_t n = ::recv(fd_, buffer.data(), buffer.size(), 0);
  if (n <= 0) return false;
  raw_.append(buffer.data(), static_cast<std::size_t>(n));
  return true;
}

bool Stream::read_line(std::string& line) {
  std::size_t end = 0;
  while ((end = raw_.find("\r\n")) == std::string::npos) {
    if (!receive()) return false;
  }
  line = raw_.substr(0, end);
  raw_.erase(0, end + 2);
  return true;
}

void Stream::read_head() {
  std::string line;
  if (!read_line(line) || !line.starts_with("HTTP/1.1 ")) {
    ended_ = true;
    return;
  }
  const int status = static_cast<int>(to_size(std::string_view(line).substr(9, 3), 10));
  while (read_line(line) && !line.empty()) {
    const std::size_t colon = std::min(line.find(':'), line.size());
    const std::size_t value = std::min(line.find_first_not_of(' ', colon + 1), line.size());
    head_.headers[lower(line.substr(0, colon))] = line.substr(value);
  }
  if (status == 100) return read_head();
  head_.status = status;
  if (auto it = head_.headers.find("transfer-encoding"); it != head_.headers.end()) chunked_ = it->second == "chunked";
  if (auto it = head_.headers.find("content-length"); it != head_.headers.end()) left_ = to_size(it->second, 10);
}

bool Stream::read_body() {
  if (ended_) return false;
  if (chunked_) {
    std::string line;
    if (!read_line(line)) return !(ended_ = true);
    const std::size_t size = to_size(line, 16);
    while (raw_.size() < size + 2) {
      if (!receive()) return !(ended_ = true);
    }
    body_.append(raw_, 0, size);
    raw_.erase(0, size + 2);
    if (size == 0) complete_ = ended_ = true;
    return size > 0;
  }
  if (left_ == 0U || (raw_.empty() && !receive())) {
    complete_ = left_ == 0U;
    ended_ = true;
    return false;
  }
  const std::size_t take = std::min(raw_.size(), left_.value_or(raw_.size()));
  body_.append(raw_, 0, take);
  raw_.erase(0, take);
  if (left_) *left_ -= take;
  return true;
}

std::optional<std::string> Stream::next() {
  for (;;) {
    std::size_t end = 0;
    while ((end = body_.find("\n\n")) == std::string::npos) {
      if (!read_body()) return std::nullopt;
    }
    const std::string event = body_.substr(0, end);
    body_.erase(0, end + 2);
    if (!event.starts_with("data: ")) continue;  // a comment that keeps the connection alive
    done_ = done_ || event == "data: [DONE]";
    return event.substr(6);
  }
}

Json Stream::next_json() {
  const auto data = next();
  if (!data || *data == "[DONE]") return nullptr;
  return Json::parse(*data, nullptr, false);
}

std::string Stream::rest() {
  while (read_body()) {
  }
  return std::exchange(body_, {});
}

Response Client::request(std::string_view method, const std::string& path, std::string_view body,
                         const Headers& headers) const {
  Stream stream(port_, request_text(method, path, body, headers));
  Response response = stream.head();
  if (method != "HEAD") response.body = stream.rest();
  response.complete = stream.complete();
  return response;
}

Response Client::post(const std::string& path, const Json& body, const Headers& headers) const {
  return request("POST", path, body.dump(), headers);
}

Stream Client::stream(const std::string& path, Json body) const {
  body["stream"] = true;
  return {port_, request_text("POST", path, body.dump(), {})};
}

Json Client::ask(const std::string& path, const Json& body) const {
  const Response response = post(path, body);
  if (response.status != 200) {
    ADD_FAILURE() << path << " answered " << response.status << ": " << response.body.substr(0, 500);
    return nullptr;
  }
  return response.json();
}

}  // namespace coppice::http_test

#include "net/client_test.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "net/http_text.h"

namespace coppice::net::testing {

Client::Client(std::uint16_t port, int receive_buffer_bytes, const char* address) {
  const bool v6 = std::string_view(address).find(':') != std::string_view::npos;
  sockaddr_storage storage{};
  socklen_t size = 0;
  if (v6) {
    sockaddr_in6 to{};
    to.sin6_family = AF_INET6;
    to.sin6_port = htons(port);
    ::inet_pton(AF_INET6, address, &to.sin6_addr);
    size = sizeof(to);
    std::memcpy(&storage, &to, size);
  } else {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    ::inet_pton(AF_INET, address, &to.sin_addr);
    size = sizeof(to);
    std::memcpy(&storage, &to, size);
  }
  socket_ = ::socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (receive_buffer_bytes > 0) {
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_buffer_bytes, sizeof(receive_buffer_bytes));
  }
  const timeval patience{.tv_sec = kPatience.count(), .tv_usec = 0};
  ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  ::setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
  EXPECT_EQ(::connect(socket_, reinterpret_cast<const sockaddr*>(&storage), size), 0) << std::strerror(errno);
}

bool Client::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

bool Client::fill() {
  char bytes[16 << 10];
  const ssize_t got = ::recv(socket_, bytes, sizeof(bytes), 0);
  EXPECT_FALSE(got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) << "the server neither answers nor closes";
  if (got <= 0) return false;
  input_.append(bytes, static_cast<std::size_t>(got));
  return true;
}

bool Client::wait_for(std::string_view text) {
  while (input_.find(text) == std::string::npos) {
    if (!fill()) return false;
  }
  return true;
}

std::string Client::receive_all() {
  while (fill()) {
  }
  return std::exchange(input_, {});
}

bool Client::wait_until_reset() {
  pollfd watched{.fd = socket_, .events = 0, .revents = 0};
  return ::poll(&watched, 1, static_cast<int>(kPatience.count() * 1000)) > 0;
}

Response Client::receive(bool head_only) {
  Response response;
  if (!wait_for("\r\n\r\n")) return response;
  const auto head_end = input_.find("\r\n\r\n");
  std::string head = input_.substr(0, head_end + 2);
  input_.erase(0, head_end + 4);
  EXPECT_TRUE(head.starts_with("HTTP/1.1 ")) << head;
  response.status = std::stoi(head.substr(9, 3));
  head.erase(0, head.find("\r\n") + 2);
  while (!head.empty()) {
    const auto end = head.find("\r\n");
    const auto colon = head.find(": ");
    response.headers[to_lower(head.substr(0, colon))] = head.substr(colon + 2, end - colon - 2);
    head.erase(0, end + 2);
  }
  if (head_only || response.status == 204) {
    response.complete = true;
  } else if (response.headers.contains("content-length")) {
    const std::size_t length = std::stoul(response.headers["content-length"]);
    while (input_.size() < length && fill()) {
    }
    response.complete = input_.size() >= length;
    response.body = input_.substr(0, length);
    input_.erase(0, length);
  } else if (response.headers.contains("transfer-encoding")) {
    while (wait_for("\r\n")) {
      const std::size_t length = std::stoul(input_.substr(0, input_.find("\r\n")), nullptr, 16);
      const std::size_t start = input_.find("\r\n") + 2;
      while (input_.size() < start + length + 2 && fill()) {
      }
      if (input_.size() < start + length + 2) break;
      response.body += input_.substr(start, length);
      input_.erase(0, start + length + 2);
      if (length == 0) {
        response.complete = true;
        break;
      }
    }
  } else {
    response.body = receive_all();
    response.complete = true;
  }
  return response;
}

Response Client::get(std::string_view path) {
  EXPECT_TRUE(send("GET " + std::string(path) + " HTTP/1.1\r\nHost: test\r\n\r\n"));
  return receive();
}

void Client::half_close() { ::shutdown(socket_, SHUT_WR); }

void Client::close() {
  if (socket_ >= 0) ::close(std::exchange(socket_, -1));
}

void Client::reset() {
  const linger hard{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
  close();
}

void TestHandler::handle(api::HttpRequest request, std::shared_ptr<api::Responder> responder) {
  const auto route = routes.find(request.path);
  if (route == routes.end()) return responder->send(refuse(404, "no such route", request.path));
  route->second(std::move(request), std::move(responder));
}

api::HttpResponse TestHandler::refuse(int status, std::string_view message, std::string_view path) {
  return {.status = status,
          .content_type = "application/json",
          .headers = {{"X-Path", std::string(path)}},
          .body = R"({"error":")" + std::string(message) + R"("})"};
}

NetTest::NetTest() {
  options.port = 0;
  options.threads = 2;
  handler.routes["/echo"] = [](api::HttpRequest request, std::shared_ptr<api::Responder> responder) {
    responder->send({.status = 200,
                     .content_type = "text/plain",
                     .headers = {{"X-Seen", std::string(request.header("x-test"))}},
                     .body = request.method + " " + request.path + "?" + request.query + " " + request.body});
  };
}

void NetTest::start() {
  auto server = Server::listen(options, handler, &metrics);
  ASSERT_TRUE(server) << server.error().message;
  server_ = std::move(*server);
  server_->start();
}

void NetTest::hold(const std::string& path, Responders& responders) {
  handler.routes[path] = [&responders](api::HttpRequest, std::shared_ptr<api::Responder> responder) {
    responders.put(std::move(responder));
  };
}

}  // namespace coppice::net::testing

// Beast's parser, set up for requests of this server, and what its results mean here.
#pragma once

#include <boost/beast/http/message.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/optional.hpp>
#include <cstdint>
#include <string>

#include "api/http.h"
#include "base/error.h"
#include "net/server.h"

namespace coppice::net {

// A body that grows with the bytes that arrive. Beast's string_body would reserve what Content-Length claims, so that a
// header alone could make the server allocate the whole limit.
struct GrowingBody {
  using value_type = std::string;

  class reader {
   public:
    template <bool is_request, class Fields>
    reader(boost::beast::http::header<is_request, Fields>&, value_type& body) : body_(body) {}
    void init(const boost::optional<std::uint64_t>&, boost::system::error_code& error) { error = {}; }
    template <class Buffers>
    std::size_t put(const Buffers& buffers, boost::system::error_code& error) {
      std::size_t bytes = 0;
      error = {};
      for (auto it = boost::asio::buffer_sequence_begin(buffers); it != boost::asio::buffer_sequence_end(buffers);
           ++it) {
        const boost::asio::const_buffer piece = *it;
        body_.append(static_cast<const char*>(piece.data()), piece.size());
        bytes += piece.size();
      }
      return bytes;
    }
    void finish(boost::system::error_code& error) { error = {}; }

   private:
    value_type& body_;
  };
};

using RequestParser = boost::beast::http::request_parser<GrowingBody>;

// The request as the api layer sees it; its body is moved out of the parser.
Result<api::HttpRequest> to_request(RequestParser& parser);

// The client waits for "100 Continue" before it sends the body.
bool expects_continue(const RequestParser& parser);

struct Refusal {
  int status = 0;
  std::string message;
};
// What to answer when reading failed; nothing (status 0) if there is nobody left to answer.
Refusal refusal_of(boost::system::error_code error, bool reading_head, const ServerOptions& options);

}  // namespace coppice::net

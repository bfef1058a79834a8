// The one error type. Operating errors travel as std::expected<T, Error>; bugs assert; exceptions of libraries are
// caught where the library is called and never cross a thread or layer.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <utility>

namespace coppice {

enum class ErrorKind : std::uint8_t {
  invalid_request,     // the client sent something wrong                               -> HTTP 400
  context_overflow,    // the prompt can never fit into the context                     -> HTTP 400,
                       // context_length_exceeded
  unauthorized,        // API key missing or wrong                                      -> HTTP 401
  not_found,           // no such route, slot, pool or model                            -> HTTP 404
  conflict,            // not while something else is going on                          -> HTTP 409
  method_not_allowed,  //                                                             -> HTTP 405
  too_large,           // the body is over the limit                                    -> HTTP 413
  overloaded,          // a bounded queue is full; trying again later helps             -> HTTP 503 with Retry-After
  unavailable,         // loading or shutting down                                      -> HTTP 503
  cancelled,           // the client went away; nobody reads this
  internal,            // our fault                                                     -> HTTP 500
};

struct Error {
  ErrorKind kind = ErrorKind::internal;
  std::string message;  // one sentence for a person; says what was wrong and, where it helps, what would be right
  std::string param;    // the request field at fault, or empty
  std::string code;     // what an API calls this very error, where the kind alone does not say it; or empty
};

template <class T>
using Result = std::expected<T, Error>;

inline std::unexpected<Error> fail(ErrorKind kind, std::string message, std::string param = {}) {
  return std::unexpected(Error{kind, std::move(message), std::move(param)});
}
inline std::unexpected<Error> invalid(std::string message, std::string param = {}) {
  return fail(ErrorKind::invalid_request, std::move(message), std::move(param));
}

}  // namespace coppice

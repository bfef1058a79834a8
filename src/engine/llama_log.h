// Where llama.cpp's messages go. llama.cpp and ggml log through one process-wide callback; this is its owner.
//
// Threading: all functions are thread-safe; the sink may be called from any thread, one call at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace coppice::engine {

enum class LogLevel : std::uint8_t { debug, info, warn, error };

// Receives whole lines without their line break. Must not call into this header.
using LogSink = std::function<void(LogLevel, std::string_view)>;

// Replaces the sink. An empty one restores the default: warnings and errors to stderr.
void set_log_sink(LogSink sink);

// Takes over llama.cpp's log callback if that has not happened yet. Whatever loads backends or models calls it first.
void install_log();

// llama-common has a log of its own on stderr: from here on it shows errors alone.
void quiet_common_log();

// Remembers error lines while it lives, because llama.cpp reports why something failed only to its log.
// Not copyable; one at a time per process is meaningful.
class ErrorCapture {
 public:
  ErrorCapture();
  ~ErrorCapture();
  ErrorCapture(const ErrorCapture&) = delete;
  ErrorCapture& operator=(const ErrorCapture&) = delete;

  // The first error, which names the cause; the later ones are its consequences. Empty if there was none.
  std::string first() const;
};

}  // namespace coppice::engine

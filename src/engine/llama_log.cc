#include "engine/llama_log.h"

#include <llama.h>
#include <log.h>

#include <cstdio>
#include <mutex>
#include <vector>

namespace coppice::engine {
namespace {

struct LogState {
  std::mutex mutex;  // guards all below
  LogSink sink;
  bool installed = false;
  LogLevel level = LogLevel::info;  // of the line being put together
  std::string line;
  int captures = 0;
  std::vector<std::string> errors;
};

LogState& state() {
  // Never destroyed: backends log while the process exits.
  static auto* instance = new LogState;
  return *instance;
}

LogLevel level_of(ggml_log_level level) {
  switch (level) {
    case GGML_LOG_LEVEL_ERROR: return LogLevel::error;
    case GGML_LOG_LEVEL_WARN: return LogLevel::warn;
    case GGML_LOG_LEVEL_DEBUG: return LogLevel::debug;
    default: return LogLevel::info;
  }
}

void emit(LogState& log) {
  constexpr std::size_t errors_max = 32;
  if (log.line.find_first_not_of(" .") != std::string::npos) {  // progress dots say nothing in a line of their own
    if (log.captures > 0 && log.level == LogLevel::error && log.errors.size() < errors_max) {
      log.errors.push_back(log.line);
    }
    if (log.sink) {
      log.sink(log.level, log.line);
    } else if (log.level >= LogLevel::warn) {
      std::fprintf(stderr, "llama.cpp: %s\n", log.line.c_str());
    }
  }
  log.line.clear();
}

// Messages come in pieces: a piece of level CONT continues the line before it.
void on_message(ggml_log_level level, const char* text, void*) {
  LogState& log = state();
  std::lock_guard lock(log.mutex);
  if (level != GGML_LOG_LEVEL_CONT) {
    if (!log.line.empty()) emit(log);
    log.level = level_of(level);
  }
  for (const char* c = text; *c != '\0'; ++c) {
    if (*c == '\n') {
      emit(log);
    } else {
      log.line += *c;
    }
  }
}

}  // namespace

void set_log_sink(LogSink sink) {
  install_log();
  std::lock_guard lock(state().mutex);
  state().sink = std::move(sink);
}

void install_log() {
  {
    std::lock_guard lock(state().mutex);
    if (state().installed) return;
    state().installed = true;
  }
  llama_log_set(on_message, nullptr);
}

void quiet_common_log() { common_log_set_verbosity_thold(LOG_LEVEL_ERROR); }

ErrorCapture::ErrorCapture() {
  install_log();
  std::lock_guard lock(state().mutex);
  if (state().captures++ == 0) state().errors.clear();
}

ErrorCapture::~ErrorCapture() {
  std::lock_guard lock(state().mutex);
  --state().captures;
}

std::string ErrorCapture::first() const {
  std::lock_guard lock(state().mutex);
  return state().errors.empty() ? std::string{} : state().errors.front();
}

}  // namespace coppice::engine

// The log: stderr, one line a decision, `key=value` pairs after a short event name. Thread-safe.
//
//   obs::log_info("request done", "id={} slot={} reused={}", id, slot, reused);
#pragma once

#include <fmt/core.h>

#include <string_view>
#include <utility>

namespace coppice::obs {

enum class LogLevel { kDebug, kInfo, kWarn, kError };

bool log_wanted(LogLevel level);
// Not a template, and in log.cc alone, as spdlog's headers and what they make of each call cost every file a second.
void write_log(LogLevel level, std::string_view event, fmt::string_view format, fmt::format_args args);

template <class... Args>
void log_at(LogLevel level, std::string_view event, fmt::format_string<Args...> format, Args&&... args) {
  // The check comes first: a line that nobody asked for must not pay for its formatting.
  if (log_wanted(level)) write_log(level, event, format, fmt::make_format_args(args...));
}

template <class... Args>
void log_debug(std::string_view event, fmt::format_string<Args...> format, Args&&... args) {
  log_at(LogLevel::kDebug, event, format, std::forward<Args>(args)...);
}
template <class... Args>
void log_info(std::string_view event, fmt::format_string<Args...> format, Args&&... args) {
  log_at(LogLevel::kInfo, event, format, std::forward<Args>(args)...);
}
template <class... Args>
void log_warn(std::string_view event, fmt::format_string<Args...> format, Args&&... args) {
  log_at(LogLevel::kWarn, event, format, std::forward<Args>(args)...);
}
template <class... Args>
void log_error(std::string_view event, fmt::format_string<Args...> format, Args&&... args) {
  log_at(LogLevel::kError, event, format, std::forward<Args>(args)...);
}

// Sends the log to stderr in one format. level: "debug", "info", "warn", "error". Call before other threads start.
void init_log(std::string_view level);
void flush_log();  // before the process ends without ado

}  // namespace coppice::obs

// The log: stderr, one line a decision, `key=value` pairs after a short event name. Thread-safe.
//
//   obs::log_info("request done", "id={} slot={} reused={}", id, slot, reused);
#pragma once

#include <spdlog/spdlog.h>

#include <string_view>
#include <utility>

namespace coppice::obs {

template <class... Args>
void log_at(spdlog::level::level_enum level, std::string_view event, fmt::format_string<Args...> format,
            Args&&... args) {
  // The check comes first: a line that nobody asked for must not pay for its formatting.
  if (!spdlog::should_log(level)) return;
  spdlog::log(level, "{} {}", event, fmt::format(format, std::forward<Args>(args)...));
}

template <class... Args>
void log_debug(std::string_view event, fmt::format_string<Args...> format, Args&&... args) {
  log_at(spdlog::level::debug, event, format, std::forward<Args>(args)...);
}
template <class... Args>
void log_info(std::string_view event, fmt::format_string<Args...> format, Args&&... args) {
  log_at(spdlog::level::info, event, format, std::forward<Args>(args)...);
}
template <class... Args>
void log_warn(std::string_view event, fmt::format_string<Args...> format, Args&&... args) {
  log_at(spdlog::level::warn, event, format, std::forward<Args>(args)...);
}
template <class... Args>
void log_error(std::string_view event, fmt::format_string<Args...> format, Args&&... args) {
  log_at(spdlog::level::err, event, format, std::forward<Args>(args)...);
}

// Sends the log to stderr in one format. level: "debug", "info", "warn", "error". Call before other threads start.
void init_log(std::string_view level);
void flush_log();  // before the process ends without ado

}  // namespace coppice::obs

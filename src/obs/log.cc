#include "obs/log.h"

#include <fmt/core.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <string>

namespace coppice::obs {
namespace {

spdlog::level::level_enum spdlog_level(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug: return spdlog::level::debug;
    case LogLevel::kInfo: return spdlog::level::info;
    case LogLevel::kWarn: return spdlog::level::warn;
    case LogLevel::kError: break;
  }
  return spdlog::level::err;
}

}  // namespace

bool log_wanted(LogLevel level) { return spdlog::should_log(spdlog_level(level)); }

void write_log(LogLevel level, std::string_view event, fmt::string_view format, fmt::format_args args) {
  std::string line(event);
  line += ' ';
  line += fmt::vformat(format, args);
  spdlog::default_logger_raw()->log(spdlog_level(level), line);
}

void init_log(std::string_view level) {
  spdlog::drop("coppice");  // of an earlier call
  auto logger = spdlog::stderr_color_mt("coppice");
  logger->set_pattern("%Y-%m-%d %H:%M:%S.%e %^%l%$ %v");
  logger->set_level(spdlog::level::from_str(level == "error" ? "err" : std::string(level)));
  spdlog::set_default_logger(std::move(logger));
}

void flush_log() { spdlog::default_logger()->flush(); }

}  // namespace coppice::obs

#include "obs/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>

#include <string>

namespace coppice::obs {

void init_log(std::string_view level) {
  spdlog::drop("coppice");  // of an earlier call
  auto logger = spdlog::stderr_color_mt("coppice");
  logger->set_pattern("%Y-%m-%d %H:%M:%S.%e %^%l%$ %v");
  logger->set_level(spdlog::level::from_str(level == "error" ? "err" : std::string(level)));
  spdlog::set_default_logger(std::move(logger));
}

void flush_log() { spdlog::default_logger()->flush(); }

}  // namespace coppice::obs

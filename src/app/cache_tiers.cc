#include "app/cache_tiers.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "app/sizes.h"
#include "engine/fingerprint.h"
#include "obs/log.h"

namespace coppice::app {
namespace {

constexpr int kHungDiskStatus = 1;

// A checkpoint of a large model takes hundreds of megabytes, and a record has to fit into a segment.
std::uint64_t segment_bytes(std::uint64_t disk_bytes_max) {
  return std::clamp(disk_bytes_max / 32, std::uint64_t{64} << 20U, std::uint64_t{1} << 30U);
}

std::uint64_t default_host_bytes() {
  const auto pages = ::sysconf(_SC_PHYS_PAGES), page_bytes = ::sysconf(_SC_PAGE_SIZE);
  if (pages <= 0 || page_bytes <= 0) return 0;
  const std::uint64_t total = static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page_bytes);
  return std::min(total / 4, std::uint64_t{8} << 30U);
}

// Everything else has ended by now. The disk's thread may still be inside a call, so nothing that it uses may go; and
// whoever stopped the server is told that not all of the cache was written.
void leave_at_once() {
  obs::log_error("stopped without the disk", "status={}", kHungDiskStatus);
  obs::flush_log();
  std::fflush(nullptr);
  ::_exit(kHungDiskStatus);
}

}  // namespace

Result<std::unique_ptr<tier::Tiers>> open_tiers(const Config& config, const Clock& clock, obs::Metrics& metrics,
                                                Waker& waker) {
  tier::Options options;
  options.host_bytes_max = config.cache_ram_bytes.value_or(default_host_bytes());
  options.wake = [&waker] { waker.wake(); };
  if (!config.cache_disk.empty()) {
    options.disk.emplace();
    options.disk->dir = config.cache_disk;
    options.disk->bytes_max = config.cache_disk_bytes_max;
    options.disk->segment_bytes = segment_bytes(config.cache_disk_bytes_max);
    options.disk->bytes_per_hour_max = config.cache_disk_bytes_per_hour_max;
    options.disk->on_hung = leave_at_once;
  }
  if (options.host_bytes_max == 0 && !options.disk) return nullptr;
  auto tiers = tier::Tiers::open(options, clock, metrics);
  if (!tiers) return std::unexpected(tiers.error());
  const tier::Stats stats = (*tiers)->stats();
  obs::log_info("cache tiers", "ram={} disk={} disk_held={} disk_blocks={}", human_bytes(options.host_bytes_max),
                options.disk ? human_bytes(options.disk->bytes_max) : "none", human_bytes(stats.disk.bytes),
                stats.disk.blocks);
  return *std::move(tiers);
}

Result<CacheTiers> tiers_for(std::unique_ptr<tier::Tiers> tiers, const engine::LlamaModel& model,
                             const engine::RunnerInfo& runner) {
  if (tiers == nullptr) return CacheTiers{};
  if (!runner.saves_ranges) {
    obs::log_warn("no cache tiers", "reason=\"the memory of this model ({}) cannot be saved in parts\"",
                  model.summary().architecture);
    return CacheTiers{};
  }
  auto fingerprint = engine::kv_fingerprint(model);
  if (!fingerprint) return std::unexpected(fingerprint.error());
  return CacheTiers{std::move(tiers), *std::move(fingerprint)};
}

}  // namespace coppice::app

// The host and the disk tier as the command line asks for them.
#pragma once

#include <functional>
#include <memory>
#include <mutex>

#include "app/config.h"
#include "base/clock.h"
#include "base/error.h"
#include "engine/llama_model.h"
#include "engine/runner.h"
#include "obs/metrics.h"
#include "sched/tiering.h"
#include "tier/tiers.h"

namespace coppice::app {

// Passes the disk's news on to the engine loop, which is made after the tiers and goes before them. Thread-safe.
class Waker {
 public:
  void set(std::function<void()> target) {
    const std::lock_guard lock(mutex_);
    target_ = std::move(target);
  }
  void wake() {
    const std::lock_guard lock(mutex_);
    if (target_) target_();
  }

 private:
  std::mutex mutex_;  // guards target_, and that it is not called once it was taken away
  std::function<void()> target_;
};

// Before the model is loaded, which may take minutes: a folder that cannot be used is told at once. Without a wish, a
// quarter of the machine's memory is the host tier's, at most 8 GiB. Null for none. Errors: ready to be shown.
Result<std::unique_ptr<tier::Tiers>> open_tiers(const Config& config, const Clock& clock, obs::Metrics& metrics,
                                                Waker& waker);

struct CacheTiers {
  std::unique_ptr<tier::Tiers> tiers;  // null: none
  std::string fingerprint;
  sched::TierOptions options() const { return {.tiers = tiers.get(), .fingerprint = fingerprint}; }
};

// None where the model's memory cannot save ranges; that is logged. Errors: internal, when the model's file cannot be
// read.
Result<CacheTiers> tiers_for(std::unique_ptr<tier::Tiers> tiers, const engine::LlamaModel& model,
                             const engine::RunnerInfo& runner);

}  // namespace coppice::app

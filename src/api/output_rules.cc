#include "api/output_rules.h"

#include <utility>

namespace coppice::api {

void OutputRules::remember(const Digest& kind, const chat::Prompt& prompt) {
  auto kept = std::make_shared<chat::Prompt>();
  kept->stops = prompt.stops;
  kept->constraint = prompt.constraint;
  kept->one_call = prompt.one_call;
  kept->parser_state = prompt.parser_state;
  const std::lock_guard lock(mutex_);
  if (const auto known = by_kind_.find(kind); known != by_kind_.end()) order_.erase(known->second);
  order_.push_front({kind, std::move(kept)});
  by_kind_[kind] = order_.begin();
  if (order_.size() <= entries_max_) return;
  by_kind_.erase(order_.back().kind);
  order_.pop_back();
}

std::shared_ptr<const chat::Prompt> OutputRules::find(const Digest& kind) {
  const std::lock_guard lock(mutex_);
  const auto known = by_kind_.find(kind);
  if (known == by_kind_.end()) return nullptr;
  order_.splice(order_.begin(), order_, known->second);
  return known->second->prompt;
}

}  // namespace coppice::api

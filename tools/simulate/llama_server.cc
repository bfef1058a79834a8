#include "simulate/llama_server.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <deque>
#include <list>
#include <optional>
#include <utility>
#include <vector>

namespace coppice::simulate {
namespace {

constexpr std::size_t kBatch = 2048, kUbatch = 512;

std::size_t in_common(const Tokens& a, const Tokens& b) {
  constexpr std::size_t kAtOnce = 256;
  const std::size_t n = std::min(a.size(), b.size());
  std::size_t i = 0;
  while (i + kAtOnce <= n && std::memcmp(a.data() + i, b.data() + i, kAtOnce * sizeof(Token)) == 0) i += kAtOnce;
  while (i < n && a[i] == b[i]) ++i;
  return i;
}

float share(std::size_t part, std::size_t whole) { return static_cast<float>(part) / static_cast<float>(whole); }

// Whole prompts, the oldest first.
class PromptCache {
 public:
  explicit PromptCache(std::int64_t tokens_max) : tokens_max_(tokens_max) {}

  // Whether it was stored.
  bool add(const Tokens& prompt) {
    const auto n = static_cast<std::int64_t>(prompt.size());
    if (prompt.empty() || n > tokens_max_) return false;
    for (const Tokens& held : prompts_) {
      if (in_common(held, prompt) == prompt.size()) return false;
    }
    std::erase_if(prompts_, [&](const Tokens& held) {
      const bool begins_it = in_common(held, prompt) == held.size();
      if (begins_it) tokens_ -= static_cast<std::int64_t>(held.size());
      return begins_it;
    });
    while (!prompts_.empty() && tokens_ + n > tokens_max_) {
      tokens_ -= static_cast<std::int64_t>(prompts_.front().size());
      prompts_.pop_front();
    }
    prompts_.push_back(prompt);
    tokens_ += n;
    return true;
  }

  // The one that suits the wanted prompt better than what is there, if there is one; it leaves the cache.
  std::optional<Tokens> take(const Tokens& there, const Tokens& wanted) {
    const std::size_t common = in_common(there, wanted);
    float keep_best = there.empty() ? -1.0F : share(common, there.size());
    float of_wanted_best = share(common, wanted.size());
    auto best = prompts_.end();
    for (auto it = prompts_.begin(); it != prompts_.end(); ++it) {
      const std::size_t n = in_common(*it, wanted);
      const float keep = share(n, it->size()), of_wanted = share(n, wanted.size());
      if (keep < 0.25F || keep <= keep_best || of_wanted <= of_wanted_best) continue;
      keep_best = keep, of_wanted_best = of_wanted, best = it;
    }
    if (best == prompts_.end()) return std::nullopt;
    Tokens taken = std::move(*best);
    prompts_.erase(best);
    tokens_ -= static_cast<std::int64_t>(taken.size());
    return taken;
  }

 private:
  std::int64_t tokens_max_, tokens_ = 0;
  std::list<Tokens> prompts_;
};

class LlamaServer final : public Server {
 public:
  LlamaServer(const Room& room, Cells cells, const Costs& costs, ManualClock& clock, Listener listener)
      : cells_(cells),
        costs_(costs),
        clock_(clock),
        listener_(std::move(listener)),
        has_cache_(room.host_tokens > 0),
        cache_(room.host_tokens),
        slots_(static_cast<std::size_t>(room.slots)) {}

  void submit(Ask ask) override { queue_.push_back(std::move(ask)); }

  bool step() override {
    while (!queue_.empty()) {
      Slot* slot = slot_for(*queue_.front().prompt);
      if (slot == nullptr) break;
      start(*slot, std::move(queue_.front()));
      queue_.pop_front();
    }
    return evaluate();
  }

 private:
  struct Slot {
    Tokens held;
    std::optional<Ask> ask;
    std::int64_t computed = 0;
    std::size_t said = 0;  // tokens of the answer
    std::int64_t last_used = -1;
    bool in_prompt() const { return ask && held.size() < ask->prompt->size(); }
  };

  // Null if all are busy. What it held may have been exchanged for what the cache has.
  Slot* slot_for(const Tokens& prompt) {
    constexpr float kSimilarityMin = 0.1F;
    Slot* best = nullptr;
    float similarity_best = 0;
    for (Slot& s : slots_) {
      if (s.ask || s.held.empty()) continue;
      const float similarity = share(in_common(s.held, prompt), prompt.size());
      if (similarity > similarity_best && similarity > kSimilarityMin) similarity_best = similarity, best = &s;
    }
    bool exchange = false;
    if (best != nullptr) {
      exchange = share(in_common(best->held, prompt), best->held.size()) < 0.5F;
    } else {
      for (Slot& s : slots_) {
        if (!s.ask && (best == nullptr || s.last_used <= best->last_used)) best = &s;
      }
      exchange = true;
    }
    if (best == nullptr || !exchange || !has_cache_) return best;
    save(*best);
    if (auto cached = cache_.take(best->held, prompt)) {
      clock_.advance(costs_.restore(static_cast<int>(cached->size())));
      best->held = *std::move(cached);
    }
    return best;
  }

  void save(const Slot& s) {
    if (cache_.add(s.held)) clock_.advance(costs_.save(static_cast<int>(s.held.size())));
  }

  void start(Slot& slot, Ask ask) {
    // The last token of the prompt is evaluated in any case.
    slot.held.resize(std::min(in_common(slot.held, *ask.prompt), ask.prompt->size() - 1));
    slot.ask = std::move(ask);
    slot.computed = 0;
    slot.said = 0;
    if (!has_cache_) return;
    for (Slot& s : slots_) {
      if (s.ask) continue;
      save(s);
      if (cells_ == Cells::unified) s.held.clear();
    }
  }

  // One batch.
  bool evaluate() {
    std::size_t n_batch = 0;
    std::vector<Slot*> speaking;
    for (Slot& s : slots_) {
      if (!s.ask || s.in_prompt()) continue;
      s.held.push_back(s.ask->answer[s.said - 1]);
      speaking.push_back(&s);
      ++n_batch;
    }
    for (Slot& s : slots_) {
      if (!s.in_prompt() || n_batch == kBatch) continue;
      const std::size_t begin = s.held.size(), n = std::min(s.ask->prompt->size() - begin, kBatch - n_batch);
      const auto from = s.ask->prompt->begin() + static_cast<std::ptrdiff_t>(begin);
      s.held.insert(s.held.end(), from, from + static_cast<std::ptrdiff_t>(n));
      s.computed += static_cast<std::int64_t>(n);
      n_batch += n;
      if (!s.in_prompt()) speaking.push_back(&s);
    }
    if (n_batch == 0) return false;
    for (std::size_t at = 0; at < n_batch; at += kUbatch) {
      clock_.advance(costs_.step(static_cast<int>(std::min(kUbatch, n_batch - at)), cells_in_use()));
    }
    for (Slot* s : speaking) speak(*s);
    return true;
  }

  int cells_in_use() const {
    std::size_t all = 0, longest = 0;
    for (const Slot& s : slots_) {
      all += s.held.size();
      if (s.ask) longest = std::max(longest, s.held.size());
    }
    return static_cast<int>(cells_ == Cells::unified ? all : longest);
  }

  void speak(Slot& s) {
    if (++s.said == 1) listener_.on_first(s.ask->id);
    if (s.said < s.ask->answer.size()) return;
    listener_.on_done(s.ask->id, s.computed);
    s.ask.reset();
    s.last_used = clock_.now().time_since_epoch().count();
  }

  const Cells cells_;
  const Costs& costs_;
  ManualClock& clock_;
  Listener listener_;
  const bool has_cache_;
  PromptCache cache_;
  std::vector<Slot> slots_;
  std::deque<Ask> queue_;
};

}  // namespace

std::unique_ptr<Server> make_llama_server(const Room& room, Cells cells, const Costs& costs, ManualClock& clock,
                                          Listener listener) {
  return std::make_unique<LlamaServer>(room, cells, costs, clock, std::move(listener));
}

}  // namespace coppice::simulate

#include "api/next_turns.h"

#include <prometheus/gauge.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "api/background_request.h"
#include "api/next_prompt.h"
#include "kv/prefix.h"
#include "obs/log.h"

namespace coppice::api {
namespace {

// Nobody waits for it; its end is counted.
class CountingSink final : public sched::EventSink {
 public:
  explicit CountingSink(obs::Metrics& metrics) : metrics_(metrics) {}
  void on_delta(sched::TextDelta) override {}
  void on_finished(sched::Finished) override { metrics_.count_next_turn("prepared"); }
  void on_failed(Error) override { metrics_.count_next_turn("given_up"); }

 private:
  obs::Metrics& metrics_;
};

// The engine's own threads wait for each other, so a thread beside them slows down every step; on Linux a nice value is
// a thread's own.
void give_way() {
  constexpr int kNice = 5;  // a third of another thread's share: late, but not when all is over
  (void)::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kNice);
}

TokenPos missing(const Tokens& beginning, const Tokens& held) {
  return static_cast<TokenPos>(beginning.size()) - kv::common_prefix(beginning, held);
}

}  // namespace

void NextTurns::add(AnsweredTurn turn) {
  const std::lock_guard lock(mutex_);
  if (stopped_) return;
  drop_waiting(turn.ns, turn.session);
  waiting_tokens_ += turn.held.size();
  waiting_.push_back(std::move(turn));
  const Limits& limits = services_.limits;
  while (waiting_.size() > limits.next_turns_max || waiting_tokens_ > limits.next_turns_tokens_max) {
    waiting_tokens_ -= waiting_.front().held.size();
    waiting_.pop_front();
    services_.metrics.count_next_turn("dropped");
    if (waiting_.empty()) break;
  }
  show_queue();
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  changed_.notify_all();
}

void NextTurns::moved_on(NamespaceId ns, const std::string& session) {
  if (session.empty()) return;
  const std::lock_guard lock(mutex_);
  if (stopped_) return;
  drop_waiting(ns, session);
  if (at_work_ && ns_at_work_ == ns && session_at_work_ == session) work_.request_stop();
  show_queue();
  changed_.notify_all();
}

void NextTurns::stop() {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(stopped_, true)) return;  // and what `services_` refers to may be gone
    work_.request_stop();
    waiting_.clear();
    waiting_tokens_ = 0;
    show_queue();
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void NextTurns::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return waiting_.empty() && !at_work_; });
}

void NextTurns::run() {
  give_way();
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stopped_ || !waiting_.empty(); });
    if (stopped_) return;
    AnsweredTurn turn = std::move(waiting_.front());
    waiting_.pop_front();
    waiting_tokens_ -= turn.held.size();
    ns_at_work_ = turn.ns;
    session_at_work_ = turn.session;
    at_work_ = true;
    work_ = std::stop_source();
    const std::stop_token stop = work_.get_token();
    lock.unlock();
    work_on(turn, stop);
    lock.lock();
    at_work_ = false;
    show_queue();
    changed_.notify_all();
  }
}

void NextTurns::work_on(const AnsweredTurn& turn, const std::stop_token& stop) {
  auto beginning = known_beginning(services_, turn.ns, turn.body, turn.answer, stop);
  if (stop.stop_requested()) return services_.metrics.count_next_turn("dropped");
  if (!beginning) return services_.metrics.count_next_turn("unknown");
  if (missing(*beginning, turn.held) < services_.idle_prefill.tokens_min)
    return services_.metrics.count_next_turn("held");
  sched::Request request =
      background_request(services_.engine, turn.ns, turn.session, std::make_shared<const Tokens>(*std::move(beginning)),
                         std::make_shared<CountingSink>(services_.metrics));
  const std::lock_guard lock(mutex_);  // so that nothing comes after moved_on()
  if (stop.stop_requested()) return services_.metrics.count_next_turn("dropped");
  const auto submitted = services_.engine.submit(std::move(request));
  services_.metrics.count_next_turn(submitted ? "submitted" : "dropped");
}

// REQUIRES: mutex_ is held.
void NextTurns::drop_waiting(NamespaceId ns, const std::string& session) {
  if (session.empty()) return;
  const auto at = std::ranges::find_if(
      waiting_, [&](const AnsweredTurn& turn) { return turn.ns == ns && turn.session == session; });
  if (at == waiting_.end()) return;
  waiting_tokens_ -= at->held.size();
  waiting_.erase(at);
  services_.metrics.count_next_turn("dropped");
}

// REQUIRES: mutex_ is held.
void NextTurns::show_queue() {
  services_.metrics.next_turns_queued.Set(static_cast<double>(waiting_.size() + (at_work_ ? 1 : 0)));
}

}  // namespace coppice::api

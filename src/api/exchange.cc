#include "api/exchange.h"

#include <chrono>
#include <iterator>
#include <limits>
#include <utility>

#include "api/completion_plan.h"
#include "api/errors.h"
#include "api/history_end.h"
#include "api/prompts.h"
#include "kv/prefix.h"

namespace coppice::api {

template <class Handle>
void Exchange::post(std::int32_t attempt, Handle handle) {
  responder_->post([self = shared_from_this(), attempt, handle = std::move(handle)]() mutable {
    if (attempt == self->attempt_) handle(*self);
  });
}

// Carries one request's events from the engine thread to the exchange.
class Exchange::Sink final : public sched::EventSink {
 public:
  Sink(std::shared_ptr<Exchange> exchange, std::size_t index)
      : exchange_(std::move(exchange)), index_(index), attempt_(exchange_->attempt_) {}

  void on_progress(const sched::Progress& progress) override {
    exchange_->post(attempt_, [i = index_, progress](Exchange& ex) { ex.on_progress(i, progress); });
  }
  void on_delta(sched::TextDelta delta) override {
    exchange_->post(attempt_,
                    [i = index_, delta = std::move(delta)](Exchange& ex) mutable { ex.on_delta(i, std::move(delta)); });
  }
  void on_finished(sched::Finished finished) override {
    exchange_->post(attempt_, [i = index_, finished = std::move(finished)](Exchange& ex) mutable {
      ex.on_finished(i, std::move(finished));
    });
  }
  void on_failed(Error error) override {
    exchange_->post(attempt_, [i = index_, error = std::move(error)](Exchange& ex) { ex.on_failed(i, error); });
  }

 private:
  const std::shared_ptr<Exchange> exchange_;
  const std::size_t index_;
  const std::int32_t attempt_;
};

Exchange::Exchange(std::shared_ptr<const Context> context, CompletionPlan plan, std::shared_ptr<Responder> responder)
    : context_(std::move(context)), plan_(std::move(plan)), responder_(std::move(responder)) {}

void Exchange::run(std::shared_ptr<const Context> context, CompletionPlan plan, std::shared_ptr<Responder> responder) {
  auto exchange = std::make_shared<Exchange>(std::move(context), std::move(plan), std::move(responder));
  exchange->start();
}

void Exchange::start() {
  auto requests = make_requests();
  if (!requests) return fail(requests.error());
  context_->next_turns.moved_on(plan_.placement.ns, plan_.placement.session);
  plan_.format->on_accepted(plan_.body, context_->services.samplers);
  // Weak: the responder must not keep alive what keeps the responder alive.
  responder_->on_gone([weak = weak_from_this()] {
    if (auto self = weak.lock()) self->close();
  });
  if (auto submitted = submit(*std::move(requests)); !submitted) return fail(submitted.error());
  if (auto confirmed = confirm(); !confirmed) return fail(confirmed.error());
  if (!plan_.generation.stream) return;
  // From here on errors come as events: no event was handled yet, as handling them waits for this task.
  responder_->start_stream("text/event-stream; charset=utf-8");
  streaming_ = true;
  write(plan_.format->on_begin());
  keep_alive();
}

// The engine is at work on the guess meanwhile; none of its events was handled yet, as that waits for this task.
Result<void> Exchange::confirm() {
  if (!plan_.confirm) return {};
  auto confirmed = plan_.confirm(plan_.body);
  if (!confirmed) return std::unexpected(confirmed.error());
  const Services& services = context_->services;
  services.metrics.count_guess(confirmed->as_guessed);
  RenderedChat& whole = confirmed->whole;
  plan_.turn = std::move(whole.turn);
  plan_.format->on_confirmed(whole.prompt, whole.continued);
  if (confirmed->as_guessed) return {};

  if (auto fits = check_prompt(whole.tokens, services.model.n_ctx); !fits) return fits;
  const auto wrong = answers_.front().prompt;
  const auto withdrawn = forget_requests();
  // Where the marks of the guess stand is known up to where it was right.
  const TokenPos right = kv::common_prefix(*wrong, whole.tokens);
  std::erase_if(plan_.placement.pins, [&](const sched::PinWish& pin) { return pin.length > right; });
  plan_.placement.history = history_tokens(whole.tokens, whole.prompt.constraint.generation_prompt, services.tokenizer);
  plan_.prompts.assign(1, std::move(whole.tokens));
  set_output_rules(whole.prompt, services, plan_);
  Result<void> submitted;
  if (auto requests = make_requests()) {
    for (std::size_t i = 0; i < withdrawn.size(); ++i) (*requests)[i].replaces = withdrawn[i];
    submitted = submit(*std::move(requests));
  } else {
    submitted = std::unexpected(requests.error());
  }
  for (std::size_t i = n_submitted_; i < withdrawn.size(); ++i) services.engine.cancel(withdrawn[i]);
  return submitted;
}

// Those that were submitted and are to be replaced: their events are ignored from here on.
std::vector<RequestId> Exchange::forget_requests() {
  ids_.resize(n_submitted_);
  answers_.clear();
  watches_.clear();
  n_submitted_ = 0;
  ++attempt_;
  return std::exchange(ids_, {});
}

void Exchange::keep_alive() {
  const auto interval_s = plan_.generation.ping_interval_s;
  if (interval_s <= 0) return;
  const auto make = [weak = weak_from_this()] {
    const auto self = weak.lock();
    return self && !self->closed_ ? self->plan_.format->on_silence() : std::string{};
  };
  responder_->set_keepalive(make, std::chrono::seconds(interval_s));
}

Result<std::vector<sched::Request>> Exchange::make_requests() {
  std::vector<sched::Request> requests;
  for (Tokens& tokens : plan_.prompts) {
    const auto prompt = std::make_shared<const Tokens>(std::move(tokens));
    for (std::int32_t i = 0; i < plan_.generation.n; ++i) {
      auto request = make_request(prompt, i);
      if (!request) return std::unexpected(request.error());
      requests.push_back(*std::move(request));
    }
  }
  set_seed(0);
  return requests;
}

// The i-th answer to one prompt.
Result<sched::Request> Exchange::make_request(const std::shared_ptr<const Tokens>& prompt, std::int32_t i) {
  set_seed(i);
  auto sampler = context_->services.samplers.make(plan_.body, plan_.constraint);
  if (!sampler) return std::unexpected(sampler.error());

  const GenerationFields& generation = plan_.generation;
  const std::size_t index = answers_.size();
  sched::Request request;
  request.id = context_->services.engine.next_id();
  request.prompt = prompt;
  request.sampler = *std::move(sampler);
  request.placement = plan_.placement;
  request.make_pool = plan_.make_pool;
  if (i > 0) {
    // Further answers run beside the first: its slot is taken, and its session must stay where it is.
    request.placement.is_fork = true;
    request.placement.id_slot.reset();
    request.placement.pins.clear();
    request.placement.session.clear();
    request.placement.session_rule.clear();
    request.placement.parent_session.clear();
  }
  request.text = plan_.text;
  request.probs = generation.probs_options();
  request.n_predict = generation.n_predict;
  request.predict_limit = generation.predict_limit;
  request.report_progress = generation.return_progress && generation.stream;
  request.sink = std::make_shared<Sink>(shared_from_this(), index);

  if (plan_.make_watch) watches_.push_back(plan_.make_watch());
  Answer& answer = answers_.emplace_back();
  answer.index = index;
  answer.first_of_prompt = i == 0;
  answer.prompt = prompt;
  ids_.push_back(request.id);
  return request;
}

// Answers to one prompt differ by their seeds; the largest 32-bit value would mean "random".
void Exchange::set_seed(std::int32_t i) {
  constexpr std::int64_t kSeeds = std::numeric_limits<std::uint32_t>::max();
  if (plan_.generation.seed) plan_.body["seed"] = (*plan_.generation.seed + i) % kSeeds;
}

Result<void> Exchange::submit(std::vector<sched::Request> requests) {
  for (auto& request : requests) {
    if (auto submitted = context_->services.engine.submit(std::move(request)); !submitted) return submitted;
    ++n_submitted_;
  }
  return {};
}

void Exchange::on_progress(std::size_t index, const sched::Progress& progress) {
  if (closed_ || !streaming_) return;
  write(plan_.format->on_progress(answers_[index], progress));
}

// Ends the answer once the client has all that it asked for.
void Exchange::watch(std::size_t index, const std::string& text) {
  if (watches_.empty() || !watches_[index]) return;
  watches_[index]->feed(text, false);
  if (!watches_[index]->has_enough()) return;
  watches_[index].reset();
  context_->services.engine.conclude(ids_[index]);
}

void Exchange::on_delta(std::size_t index, sched::TextDelta delta) {
  if (closed_) return;
  watch(index, delta.text);
  if (streaming_) return write(plan_.format->on_delta(answers_[index], delta));
  sched::TextDelta& all = answers_[index].output;
  all.text += delta.text;
  all.tokens.insert(all.tokens.end(), delta.tokens.begin(), delta.tokens.end());
  std::ranges::move(delta.probs, std::back_inserter(all.probs));
}

void Exchange::on_finished(std::size_t index, sched::Finished finished) {
  Answer& answer = answers_[index];
  if (!streaming_) on_delta(index, std::move(finished.tail));
  answer.finished = true;
  answer.stop = finished.stop;
  answer.stop_word = std::move(finished.stop_word);
  answer.report = std::move(finished.report);
  answer.generated = std::move(finished.generated);
  answer.end_token = finished.end_token;
  ++n_finished_;
  if (closed_) return;
  if (streaming_) {
    std::string bytes = plan_.format->on_finished(answer, finished.tail);
    remember(answer);  // before the client can send it back
    write(std::move(bytes));
  }
  if (n_finished_ == answers_.size()) end();
}

void Exchange::on_failed(std::size_t index, const Error& error) {
  answers_[index].finished = true;
  fail(error);
}

void Exchange::remember(const Answer& answer) {
  if (!plan_.turn || plan_.format->message(answer) == nullptr) return;
  remember_turn(context_->services, *plan_.turn, plan_.placement, answer, *plan_.format->message(answer),
                plan_.format->minted_ids(answer));
}

// The client has its answer; now is the time for what it will ask next.
void Exchange::prepare_next() {
  if (!plan_.is_chat || answers_.size() != 1) return;
  const Answer& answer = answers_.front();
  const chat::Message* message = plan_.format->message(answer);
  if (message == nullptr) return;
  prepare_next_turn(*context_, plan_.generation, plan_.placement, answer, *message, plan_.format->minted_ids(answer),
                    std::move(plan_.body));
}

void Exchange::write(std::string bytes) {
  if (closed_ || bytes.empty()) return;
  if (!responder_->write(std::move(bytes))) close();
}

void Exchange::end() {
  if (closed_) return;
  if (streaming_) {
    write(plan_.format->on_end(answers_));
    responder_->finish();
  } else {
    HttpResponse response = json_response(plan_.format->whole(answers_));
    for (const Answer& answer : answers_) remember(answer);
    response.status = plan_.status;
    responder_->send(std::move(response));
  }
  prepare_next();
  close();
}

void Exchange::fail(const Error& error) {
  if (closed_) return;
  if (streaming_) {
    write(plan_.format->on_error(error));
    responder_->finish();
  } else {
    responder_->send(plan_.format->refusal(error));
  }
  close();
}

void Exchange::close() {
  if (std::exchange(closed_, true)) return;
  for (std::size_t i = 0; i < n_submitted_; ++i) {
    if (!answers_[i].finished) context_->services.engine.cancel(ids_[i]);
  }
}

}  // namespace coppice::api

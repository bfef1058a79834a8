// One HTTP exchange that generates: submits its requests to the engine, collects what comes back, answers the client.
//
// Ownership: shared by the event sinks that the engine holds, so it lives until its last request has ended.
// Threading: run() and everything after it happen in tasks of the responder, one at a time; sinks only post tasks.
//
//   state     | an event of a request           | the last request finished | a request failed        | client gone
//   ----------+---------------------------------+---------------------------+-------------------------+------------
//   running   | collected, or sent (streaming)  | answer ends -> closed     | error sent -> closed    | -> closed
//   closed    | ignored                         | -                         | -                       | -
//
// Before the first event is handled, a plan that was made from a guess is confirmed, or replaced by the right one.
// Going to closed cancels every request that still runs.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "api/completion_draft.h"
#include "api/context.h"
#include "api/format.h"
#include "api/http.h"
#include "api/turn_recorder.h"
#include "base/json.h"
#include "sched/request.h"

namespace coppice::api {

// Everything that a route has decided about a completion.
struct CompletionPlan {
  std::vector<Tokens> prompts;  // REQUIRES: not empty, none empty
  GenerationFields generation;
  sched::Placement placement;
  sched::TextOptions text;
  engine::ChatConstraint constraint;
  Json body;  // for the samplers
  std::unique_ptr<Format> format;
  std::function<Result<Confirmed>(const Json& body)> confirm;  // see CompletionDraft
  // Where an answer may have to end before the model ends it: a parser that says when; else null.
  std::function<std::unique_ptr<chat::OutputParser>()> make_watch;
  std::optional<TurnSeed> turn;              // what the answers are remembered by
  bool is_chat = false;                      // `body` is a rendered conversation, which goes on
  std::optional<sched::PoolSpec> make_pool;  // keep the prompt; REQUIRES: one prompt, nothing to generate
  int status = 200;                          // of the answer, when all went well
};

class Exchange : public std::enable_shared_from_this<Exchange> {
 public:
  // Answers the client, now or later, also with whatever error comes up.
  static void run(std::shared_ptr<const Context> context, CompletionPlan plan, std::shared_ptr<Responder> responder);

  Exchange(std::shared_ptr<const Context> context, CompletionPlan plan, std::shared_ptr<Responder> responder);

 private:
  class Sink;

  Result<std::vector<sched::Request>> make_requests();
  Result<sched::Request> make_request(const std::shared_ptr<const Tokens>& prompt, std::int32_t i);
  void set_seed(std::int32_t i);
  Result<void> submit(std::vector<sched::Request> requests);
  void start();
  Result<void> confirm();
  std::vector<RequestId> forget_requests();
  void keep_alive();

  // `attempt`: that of the request which the event is of; those of a request that was withdrawn are ignored.
  template <class Handle>
  void post(std::int32_t attempt, Handle handle);
  void on_progress(std::size_t index, const sched::Progress& progress);
  void on_delta(std::size_t index, sched::TextDelta delta);
  void on_finished(std::size_t index, sched::Finished finished);
  void on_failed(std::size_t index, const Error& error);

  void watch(std::size_t index, const std::string& text);
  void remember(const Answer& answer);
  void prepare_next();
  void write(std::string bytes);
  void end();
  void fail(const Error& error);
  void close();  // cancels what still runs

  const std::shared_ptr<const Context> context_;
  CompletionPlan plan_;
  const std::shared_ptr<Responder> responder_;
  std::vector<Answer> answers_;
  std::vector<RequestId> ids_;                                // by answer
  std::vector<std::unique_ptr<chat::OutputParser>> watches_;  // by answer, until it has enough; or none
  std::size_t n_submitted_ = 0, n_finished_ = 0;
  std::int32_t attempt_ = 0;  // grows when the requests are replaced, see confirm()
  bool streaming_ = false;    // the stream's head was sent
  bool closed_ = false;
};

}  // namespace coppice::api

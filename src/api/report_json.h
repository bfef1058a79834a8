// The counts and reasons of spec A13-A14 as JSON: OpenAI's usage, llama-server's timings, our own "coppice" object.
#pragma once

#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "sched/request.h"

namespace coppice::api {

// Every rate is a finite number; 0 when nothing was measured.
Json timings_json(const sched::Report& report);

// `session` and `rule` are the request's own: of several answers to one prompt only the first runs under its session.
struct SessionFacts {
  std::string session, rule, parent_session;
  bool continued = false;  // the prompt went on from the exact tokens of an answer of ours
};
Json coppice_json(const sched::Report& report, const SessionFacts& session);

// Token counts of a whole response. A prompt counts once however many answers it got, as with OpenAI; of them the first
// says how much of it was cached.
struct Usage {
  std::int64_t prompt_tokens = 0, cached_tokens = 0, completion_tokens = 0;

  void add_first_answer(const sched::Report& report);
  void add_further_answer(const sched::Report& report);
  Json to_json() const;
};

}  // namespace coppice::api

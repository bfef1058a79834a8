// A request that asks for the KV of a prompt and for no answer, when nothing else is to be done (spec B25).
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "sched/engine.h"

namespace coppice::api {

// For work whose end nobody has to hear of; the scheduler counts it.
class Unheard final : public sched::EventSink {
 public:
  void on_delta(sched::TextDelta) override {}
  void on_finished(sched::Finished) override {}
  void on_failed(Error) override {}
};

inline sched::Request background_request(sched::Engine& engine, NamespaceId ns, std::string session,
                                         std::shared_ptr<const Tokens> prompt,
                                         std::shared_ptr<sched::EventSink> sink = std::make_shared<Unheard>()) {
  sched::Request request;
  request.id = engine.next_id();
  request.placement.ns = ns;
  request.placement.session = std::move(session);
  request.prompt = std::move(prompt);
  request.n_predict = 0;
  request.background = true;
  request.sink = std::move(sink);
  return request;
}

}  // namespace coppice::api

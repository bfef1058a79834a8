#include "simulate/replay.h"

#include <fmt/format.h>

#include <deque>
#include <queue>
#include <stdexcept>
#include <unordered_map>
#include <utility>

namespace coppice::simulate {
namespace {

// One agent's place in its trace.
struct Agent {
  int session = 0;
  const bench::TraceAgent* trace = nullptr;
  std::string name;
  Agent* parent = nullptr;  // waits for it; null: nobody does
  std::size_t step = 0;     // the next one
  int children = 0;         // that still run
};

class Run {
 public:
  Run(const Workload& workload, const MakeServer& make_server)
      : workload_(workload),
        server_(make_server(clock_,
                            {.on_first = [this](std::uint64_t id) { on_first(id); },
                             .on_done = [this](std::uint64_t id, std::int64_t computed) { on_done(id, computed); }})) {}

  Outcome run() {
    for (int session = 0; session < workload_.sessions(); ++session) {
      Agent& agent = agents_.emplace_back();
      agent.session = session;
      agent.trace = &workload_.agent(session);
      agent.name = std::to_string(session);
      at(clock_.now() + workload_.start(session), agent);
    }
    while (!events_.empty() || !asked_.empty()) {
      while (!events_.empty() && events_.top().when <= clock_.now()) {
        Agent& agent = *events_.top().agent;
        events_.pop();
        go_on(agent);
      }
      const TimePoint before = clock_.now();
      const bool worked = server_->step();
      outcome_.working_s += to_s(clock_.now() - before);
      if (worked) continue;
      if (events_.empty()) {
        if (asked_.empty()) break;
        throw std::logic_error("the server has nothing to do, and requests wait");
      }
      if (events_.top().when > clock_.now()) clock_.advance(events_.top().when - clock_.now());
    }
    outcome_.makespan_s = to_s(clock_.now().time_since_epoch());
    return std::move(outcome_);
  }

 private:
  struct Event {
    TimePoint when;
    std::uint64_t order = 0;
    Agent* agent = nullptr;
    bool operator<(const Event& other) const {  // the soonest is on top
      return when != other.when ? when > other.when : order > other.order;
    }
  };
  struct Asked {
    Agent* agent = nullptr;
    TimePoint when;
  };

  void at(TimePoint when, Agent& agent) { events_.push({when, n_events_++, &agent}); }

  // The agent has thought, or its children have ended.
  void go_on(Agent& agent) {
    if (agent.step >= workload_.steps(*agent.trace)) {
      if (agent.parent != nullptr && --agent.parent->children == 0) arrive(*agent.parent);
      return;
    }
    const bench::TraceStep& step = agent.trace->steps[agent.step];
    if (std::holds_alternative<bench::TraceRequest>(step)) return ask(agent);
    ++agent.step;
    const auto& children = std::get<std::vector<bench::TraceAgent>>(step);
    agent.children = static_cast<int>(children.size());
    for (const bench::TraceAgent& trace : children) {
      Agent& child = agents_.emplace_back();
      child.session = agent.session;
      child.trace = &trace;
      child.name = fmt::format("{}-{}", agent.name, agents_.size());
      child.parent = &agent;
      arrive(child);
    }
  }

  // At its next step, which begins when it has thought.
  void arrive(Agent& agent) {
    const auto& steps = agent.trace->steps;
    const auto* request = agent.step < steps.size() ? std::get_if<bench::TraceRequest>(&steps[agent.step]) : nullptr;
    at(clock_.now() + (request != nullptr ? workload_.think(*request) : Duration{0}), agent);
  }

  void ask(Agent& agent) {
    Turn turn = workload_.turn(agent.session, *agent.trace, agent.step++);
    const std::uint64_t id = ++outcome_.requests;
    outcome_.prompt_tokens += static_cast<std::int64_t>(turn.prompt.size());
    outcome_.answered += static_cast<std::int64_t>(turn.answer.size());
    asked_[id] = {&agent, clock_.now()};
    server_->submit({.id = id,
                     .session = agent.name,
                     .prompt = std::make_shared<const Tokens>(std::move(turn.prompt)),
                     .answer = std::move(turn.answer)});
  }

  void on_first(std::uint64_t id) { outcome_.first_ms.push_back(to_ms(clock_.now() - asked_.at(id).when)); }

  void on_done(std::uint64_t id, std::int64_t computed) {
    outcome_.computed += computed;
    const auto it = asked_.find(id);
    Agent& agent = *it->second.agent;
    asked_.erase(it);
    arrive(agent);
  }

  const Workload& workload_;
  ManualClock clock_;
  std::deque<Agent> agents_;  // stay where they are
  std::priority_queue<Event> events_;
  std::uint64_t n_events_ = 0;
  std::unordered_map<std::uint64_t, Asked> asked_;
  Outcome outcome_;
  std::unique_ptr<Server> server_;  // its listener uses all of the above
};

}  // namespace

Outcome replay(const Workload& workload, const MakeServer& make_server) { return Run(workload, make_server).run(); }

}  // namespace coppice::simulate

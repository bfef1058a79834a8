#include "engine/gbnf_check.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/gbnf_parser.h"

namespace coppice::engine {
namespace {

using gbnf::Alternate;
using gbnf::Element;
using gbnf::Grammar;
using gbnf::Rule;

constexpr std::int64_t kPathsMax = 1'000'000;  // takes llama.cpp some tens of milliseconds
constexpr std::int64_t kDepthMax = 5000;       // about 1 MiB of its stack

std::size_t index(int rule) { return static_cast<std::size_t>(rule); }

// llama.cpp's search for left recursion, which goes from each rule to those that its alternates begin with and takes
// only a rule with an alternate of no elements for possibly empty. Counts the paths instead of walking them.
class LeftPaths {
 public:
  explicit LeftPaths(const Grammar& grammar) : rules_(grammar.rules), seen_(rules_.size()), empty_(rules_.size()) {
    for (std::size_t i = 0; i < rules_.size(); ++i) {
      empty_[i] = std::ranges::any_of(rules_[i].alternates, &Alternate::empty);
    }
  }

  Result<void> check() {
    for (std::size_t i = 0; i < rules_.size(); ++i) {
      if (auto r = visit(i, 0); !r) return std::unexpected(r.error());
    }
    return {};
  }

 private:
  struct Seen {
    enum : std::uint8_t { no, in_progress, done } state = no;
    std::int64_t paths = 0, depth = 0;
  };

  bool may_be_empty(const Element& e) const { return e.rule != Element::kTerminal && empty_[index(e.rule)]; }

  Result<Seen> visit(std::size_t rule, std::int64_t depth) {
    Seen& seen = seen_[rule];
    if (seen.state == Seen::done) return seen;
    if (seen.state == Seen::in_progress) return invalid("rule '" + rules_[rule].name + "' is left-recursive");
    if (depth > kDepthMax) return too_complex();
    seen.state = Seen::in_progress;
    seen.paths = 1;
    for (const Alternate& alternate : rules_[rule].alternates) {
      for (const Element& e : alternate) {
        if (e.rule == Element::kTerminal) break;
        const auto sub = visit(index(e.rule), depth + 1);
        if (!sub) return sub;
        // Of a row of equal elements, the second and later ones are only looked at if the first may be empty.
        const bool goes_on = may_be_empty(e);
        const std::int64_t times = goes_on ? e.repeat * rules_[rule].chain : 1;
        seen.paths += sub->paths * times;
        seen.depth = std::max(seen.depth, sub->depth + (goes_on ? rules_[rule].chain : 1));
        if (seen.paths > kPathsMax || depth + seen.depth > kDepthMax) return too_complex();
        if (!goes_on) break;
      }
    }
    seen.state = Seen::done;
    return seen;
  }

  static std::unexpected<Error> too_complex() {
    return invalid("the grammar has too many ways to begin; use fewer alternatives that begin with another rule");
  }

  const std::vector<Rule>& rules_;
  std::vector<Seen> seen_;
  std::vector<bool> empty_;
};

// Which rules can match nothing at all. Linear: each alternate waits for its first element that is not known to be
// nullable, and goes on from there when it turns out to be.
class Nullable {
 public:
  explicit Nullable(const Grammar& grammar) : nullable_(grammar.rules.size()), waiting_(grammar.rules.size()) {
    for (std::size_t i = 0; i < grammar.rules.size(); ++i) {
      for (const Alternate& alternate : grammar.rules[i].alternates) work_.push_back({i, &alternate});
    }
    while (!work_.empty()) {
      const Cursor next = work_.back();
      work_.pop_back();
      advance(next);
    }
  }

  bool of(std::size_t rule) const { return nullable_[rule]; }
  bool of(const Element& e) const { return e.rule != Element::kTerminal && nullable_[index(e.rule)]; }

 private:
  struct Cursor {
    std::size_t rule;
    const Alternate* alternate;
    std::size_t at = 0;
  };

  void advance(Cursor c) {
    while (c.at < c.alternate->size() && of((*c.alternate)[c.at])) ++c.at;
    if (c.at < c.alternate->size()) {
      const int blocker = (*c.alternate)[c.at].rule;
      if (blocker != Element::kTerminal) waiting_[index(blocker)].push_back(c);
    } else if (!nullable_[c.rule]) {
      nullable_[c.rule] = true;
      work_.insert(work_.end(), waiting_[c.rule].begin(), waiting_[c.rule].end());
      waiting_[c.rule].clear();
    }
  }

  std::vector<bool> nullable_;
  std::vector<std::vector<Cursor>> waiting_;
  std::vector<Cursor> work_;
};

// Where a rule can begin when everything before that matches nothing.
struct Begin {
  std::vector<std::vector<int>> rules;  // by rule; without those that end with themselves, see below
  std::vector<bool> with_terminal;

  Begin(const Grammar& grammar, const Nullable& nullable)
      : rules(grammar.rules.size()), with_terminal(grammar.rules.size()) {
    for (std::size_t i = 0; i < grammar.rules.size(); ++i) {
      for (const Alternate& alternate : grammar.rules[i].alternates) {
        for (const Element& e : alternate) {
          if (e.rule == Element::kTerminal) {
            with_terminal[i] = true;
            break;
          }
          // A rule that comes to itself as its last element leaves the same stack, which llama.cpp drops: x ::= y x |
          const bool is_last = &e == &alternate.back() && e.repeat == 1;
          if (!(index(e.rule) == i && is_last)) rules[i].push_back(e.rule);
          if (!nullable.of(e)) break;
        }
      }
    }
  }
};

// A rule from which neither a character nor the rule's end can be reached; -1 if there is none.
int find_barren(const Begin& begin, const Nullable& nullable) {
  const std::size_t n = begin.rules.size();
  std::vector<std::vector<std::size_t>> users(n);
  std::vector<bool> fertile(n);
  std::vector<std::size_t> work;
  for (std::size_t i = 0; i < n; ++i) {
    for (int target : begin.rules[i]) users[index(target)].push_back(i);
    if (begin.with_terminal[i]) work.push_back(i);
  }
  while (!work.empty()) {
    const std::size_t i = work.back();
    work.pop_back();
    if (fertile[i]) continue;
    fertile[i] = true;
    work.insert(work.end(), users[i].begin(), users[i].end());
  }
  for (std::size_t i = 0; i < n; ++i) {
    if (!fertile[i] && !nullable.of(i)) return static_cast<int>(i);
  }
  return -1;
}

// A rule on a cycle, or behind one; -1 if there is no cycle. Takes away rules that no remaining rule leads to.
int find_cycle(const std::vector<std::vector<int>>& edges) {
  std::vector<int> incoming(edges.size());
  for (const auto& targets : edges) {
    for (int t : targets) ++incoming[index(t)];
  }
  std::vector<std::size_t> free;
  for (std::size_t i = 0; i < edges.size(); ++i) {
    if (incoming[i] == 0) free.push_back(i);
  }
  while (!free.empty()) {
    const std::size_t i = free.back();
    free.pop_back();
    for (int t : edges[i]) {
      if (--incoming[index(t)] == 0) free.push_back(index(t));
    }
  }
  const auto left = std::ranges::find_if(incoming, [](int n) { return n > 0; });
  return left == incoming.end() ? -1 : static_cast<int>(left - incoming.begin());
}

Result<void> check(const Grammar& grammar) {
  if (auto r = LeftPaths(grammar).check(); !r) return r;
  const Nullable nullable(grammar);
  const Begin begin(grammar, nullable);
  if (const int i = find_barren(begin, nullable); i >= 0) {
    return invalid("rule '" + grammar.rules[index(i)].name + "' can never match anything");
  }
  if (const int i = find_cycle(begin.rules); i >= 0) {
    return invalid("rule '" + grammar.rules[index(i)].name + "' is left-recursive behind rules that may be empty");
  }
  return {};
}

}  // namespace

Result<void> check_gbnf(std::string_view grammar, const std::string& param) {
  const auto refuse = [&](const Error& e) { return invalid("the grammar does not compile: " + e.message, param); };
  if (grammar.starts_with("%llguidance")) {
    return invalid("llguidance grammars are not supported; use GBNF", param);
  }
  const auto parsed = gbnf::parse(grammar);
  if (!parsed) return refuse(parsed.error());
  if (const auto r = check(*parsed); !r) return refuse(r.error());
  return {};
}

}  // namespace coppice::engine

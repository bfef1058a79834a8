// What the scheduler is given, and what it reports. Plain data; owners are named per field.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/ids.h"
#include "engine/sampler.h"
#include "kv/reuse.h"

namespace coppice::sched {

// A beginning of the prompt that is to be kept for a while.
struct PinWish {
  TokenPos length = 0;  // REQUIRES: 1 <= length <= that of the prompt
  Duration ttl{0};
  friend bool operator==(const PinWish&, const PinWish&) = default;
};

// Where a request would like to run, which KV it says it shares (spec A1, A5-A12), and what of it is to be kept.
struct Placement {
  std::optional<SlotId> id_slot;           // explicit slot; wait for it if busy
  std::string session;                     // session key, "" for none; a hint, never an authority (A4)
  std::string session_rule;                // which rule of session/ found the key, for the report
  std::string parent_session;              // the session that this one branched from, "" for none; for people
  std::optional<SlotId> shared_pool_slot;  // donor
  TokenPos shared_prefix_n_tokens = 0;     // P: how much of the donor the caller says it shares
  std::string pool;                        // named pool that the prompt begins with, "" for none (A12)
  bool cache_prompt = true;
  NamespaceId ns;
  std::vector<PinWish> pins;  // shortest first; what cannot be kept is counted, and no error
  TokenPos history =
      0;  // so many of the prompt's tokens begin every later turn of the conversation as well; 0: unknown
  bool is_fork = false;  // the second or a further one of n completions of one prompt: stays out of the session map
};

// Asks for the prompt to be kept as a named pool once it has been computed (spec A12).
struct PoolSpec {
  std::string name;  // not empty; a pool of the same name and namespace is replaced
  Duration ttl{0};   // 0: until it is deleted
};

struct TextOptions {
  std::vector<std::string> stop;      // generation ends before the first of these
  std::unordered_set<Token> visible;  // special tokens that are rendered as text (the tool parser needs them)
  bool special = false;               // render every special token
  bool return_tokens = false;         // fill TextDelta::tokens
};

class EventSink;

struct Request {
  RequestId id;
  std::shared_ptr<const Tokens> prompt;      // REQUIRES: 1 <= size; every token within the vocabulary
  std::unique_ptr<engine::Sampler> sampler;  // null for background work
  Placement placement;
  std::optional<PoolSpec> make_pool;  // REQUIRES: n_predict == 0, cache_prompt
  // Nobody waits for it: it is computed while nothing else is to be done, and given up for many reasons, with
  // on_failed(cancelled) (spec B25). Of all such requests of a session only the newest stays. REQUIRES: n_predict == 0,
  // cache_prompt, no pool, pins, slot or donor.
  bool background = false;
  // The request that this one takes the place of, as it was made from a wrong guess. It ends as if cancelled, and what
  // it computed of this prompt counts as computed by this one.
  std::optional<RequestId> replaces;
  TextOptions text;
  engine::ProbsOptions probs;
  std::int32_t n_predict = -1;      // tokens to generate; -1: until stop or a full context; 0: only evaluate the prompt
  Duration predict_limit{0};        // 0: none; else generation ends at the first line break after this much decoding
  bool report_progress = false;     // send Progress events: when prefill begins, and during it
  std::shared_ptr<EventSink> sink;  // kept until Finished or Failed was delivered
};

struct TokenText {
  engine::Sampled sampled;
  std::string piece;  // this token's bytes, maybe not whole UTF-8
};

struct Progress {
  TokenPos total = 0;      // prompt tokens
  TokenPos reused = 0;     // of those, not computed
  TokenPos processed = 0;  // reused + computed so far
  Duration elapsed{0};     // since prefill began
};

struct TextDelta {
  std::string text;              // whole UTF-8; may be empty while bytes or a possible stop word are held back
  Tokens tokens;                 // only with TextOptions::return_tokens
  std::vector<TokenText> probs;  // only with ProbsOptions::n_probs > 0
};

// `enough`: the caller had what it wanted, see Engine::conclude.
enum class StopKind : std::uint8_t { end_of_generation, stop_word, length, enough };

// The per-request record: every count and reason of spec A13-A14.
struct Report {
  SlotId slot;
  std::string session, session_rule;
  TokenPos prompt_tokens = 0;
  TokenPos computed = 0;  // prompt tokens evaluated for this request (recomputation after a pause is counted too)
  TokenPos reused_slot = 0, reused_donor = 0, reused_pool = 0, reused_host = 0, reused_disk = 0;
  TokenPos predicted = 0;
  kv::Source source = kv::Source::none;          // where the largest reused part came from
  kv::MissReason reason = kv::MissReason::none;  // why less was reused than could be hoped for
  TokenPos diverged_at = -1;                     // token index where the prompt left what was held; -1: it did not
  std::string diverged_text;                     // a short window of the prompt around it
  std::int32_t pauses = 0;                       // times the request gave its cells back and recomputed
  TokenPos prepared = 0;                         // of the reused ones, computed before while nobody waited (B25)
  TokenPos pinned = 0;                           // of its prompt, how many tokens its own pins keep
  std::int32_t pins_refused = 0;                 // of its pins
  bool coalesced = false;                        // waited for a request that was computing the common prefix (B16)
  Duration queued{0}, restore{0}, prefill{0}, decode{0};
  TokenPos reused() const { return reused_slot + reused_donor + reused_pool + reused_host + reused_disk; }
};

struct Finished {
  StopKind stop = StopKind::length;
  std::string stop_word;  // which one, for StopKind::stop_word
  TextDelta tail;         // text that was still held back
  Report report;
  Tokens generated;                // every token of the answer, but for the one that ended the generation
  std::optional<Token> end_token;  // that one, for StopKind::end_of_generation
};

// Receives one request's events, on the engine thread. Implementations must not block or throw; they hand the event to
// a thread of their own. Exactly one of on_finished / on_failed ends the request, after which nothing more comes.
class EventSink {
 public:
  virtual ~EventSink() = default;
  virtual void on_progress(const Progress&) {}
  virtual void on_delta(TextDelta delta) = 0;
  virtual void on_finished(Finished finished) = 0;
  virtual void on_failed(Error error) = 0;
};

struct SlotInfo {
  SlotId id;
  bool busy = false;
  TokenPos held = 0;       // tokens held
  TokenPos exclusive = 0;  // of those, cells that no other sequence shares
  std::string session;
  std::optional<RequestId> request;
  TokenPos prompt_tokens = 0, processed = 0, predicted = 0;  // of the running request
};

struct Snapshot {
  std::vector<SlotInfo> slots;
  TokenPos cells_used = 0, cells_total = 0;
  TokenPos cells_pinned = 0;  // by pools and cache marks
  std::int32_t sequences_parked = 0, sequences_total = 0;
  std::size_t queued = 0, queue_limit = 0;
};

}  // namespace coppice::sched

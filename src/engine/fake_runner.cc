#include "engine/fake_runner.h"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace coppice::engine {
namespace {

// splitmix64's finaliser (Steele, Lea, Flood 2014): every input bit reaches every output bit.
std::uint64_t mix(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15ULL;
  x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27U)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31U);
}

std::uint64_t kv_of(Token token, TokenPos pos, std::uint64_t visible) {
  return mix(mix(mix(static_cast<std::uint64_t>(token)) ^ static_cast<std::uint64_t>(pos)) ^ visible);
}

Token next_token(const FakeRunnerOptions& options, std::uint64_t visible) {
  const std::uint64_t hash = mix(visible);
  if (options.eog_one_in != 0 && (hash >> 32U) % options.eog_one_in == 0) return FakeRunner::kEndOfGeneration;
  return static_cast<Token>(1 + hash % (static_cast<std::uint64_t>(options.n_vocab) - 1));
}

class FakeSampler final : public Sampler {
 public:
  void accept_prompt(std::span<const Token>) override {}
};

}  // namespace

FakeRunner::FakeRunner(const FakeRunnerOptions& options)
    : options_(options),
      cells_(static_cast<std::size_t>(options.n_cells)),
      seqs_(static_cast<std::size_t>(options.n_seqs)) {
  assert(options.n_seqs <= static_cast<std::int32_t>(kMaxSeqs));
  info_ = {.n_cells = options.n_cells,
           .n_seqs = options.n_seqs,
           .n_batch = options.n_batch,
           .n_ubatch = options.n_batch,
           .rewind = options.rewind,
           .bytes_per_cell = sizeof(std::uint64_t),
           .saves_ranges = true};
  for (std::size_t i = cells_.size(); i > 0; --i) free_.push_back(i - 1);
}

FakeRunner::Seq& FakeRunner::seq(SeqId id) { return seqs_.at(static_cast<std::size_t>(id.value)); }
const FakeRunner::Seq& FakeRunner::seq(SeqId id) const { return seqs_.at(static_cast<std::size_t>(id.value)); }

TokenPos FakeRunner::used() const { return static_cast<TokenPos>(cells_.size() - free_.size()); }
TokenPos FakeRunner::length(SeqId id) const { return static_cast<TokenPos>(seq(id).cells.size()); }

bool FakeRunner::take_cell(std::size_t& cell) {
  if (free_.empty()) return false;
  cell = free_.back();
  free_.pop_back();
  return true;
}

void FakeRunner::release(std::size_t cell, SeqId id) {
  cells_[cell].seqs.reset(static_cast<std::size_t>(id.value));
  if (cells_[cell].seqs.none()) free_.push_back(cell);
}

void FakeRunner::share(SeqId from, SeqId to, TokenPos begin, TokenPos end) {
  assert(from != to && 0 <= begin && begin <= end && end <= length(from));
  assert(begin == 0 || options_.rewind == Rewind::anywhere);
  Seq& target = seq(to);
  // A gap left by remove() in the middle is a run of positions without cell; here it must be exactly [begin, end).
  const auto at = static_cast<std::size_t>(begin), n = static_cast<std::size_t>(end - begin);
  assert(target.cells.size() <= at || (target.cells.size() >= at + n));
  if (target.cells.size() < at + n) target.cells.resize(at + n, cells_.size());
  for (std::size_t pos = at; pos < at + n; ++pos) {
    assert(target.cells[pos] == cells_.size());
    const std::size_t cell = seq(from).cells[pos];
    target.cells[pos] = cell;
    target.visible += cells_[cell].kv;
    cells_[cell].seqs.set(static_cast<std::size_t>(to.value));
  }
  target.window_begin = std::max(target.window_begin, seq(from).window_begin);
  target.cells_only = seq(from).cells_only;
  target.wrong_state = seq(from).wrong_state;
}

void FakeRunner::share_cells(SeqId from, SeqId to, TokenPos end) {
  assert(options_.rewind != Rewind::anywhere && length(to) == 0 && 0 < end && end <= length(from));
  share(from, to, 0, end);
  seq(to).cells_only = true;
  seq(to).wrong_state = 1;
}

bool FakeRunner::remove(SeqId id, TokenPos begin, TokenPos end) {
  Seq& s = seq(id);
  if (end < 0 || end > length(id)) end = length(id);
  if (begin >= end) return true;
  if (begin == 0 && end == length(id)) return clear(id), true;
  if (options_.rewind == Rewind::never) return false;
  for (TokenPos pos = begin; pos < end; ++pos) {
    std::size_t& cell = s.cells[static_cast<std::size_t>(pos)];
    s.visible -= cells_[cell].kv;
    release(cell, id);
    cell = cells_.size();
  }
  if (end == length(id)) s.cells.resize(static_cast<std::size_t>(begin));
  return true;
}

void FakeRunner::clear(SeqId id) {
  for (std::size_t cell : seq(id).cells) release(cell, id);
  seq(id) = Seq{};
}

bool FakeRunner::can_resume(SeqId id, TokenPos length, TokenPos at) const {
  if (at > length) return false;
  if (at == 0) return true;
  if (seq(id).cells_only) return false;
  if (at == length) return true;
  switch (options_.rewind) {
    case Rewind::anywhere: return true;
    case Rewind::window: return std::max(0, at - options_.window) >= seq(id).window_begin;
    case Rewind::never: return false;
  }
  return false;
}

DecodeStatus FakeRunner::decode(std::span<const BatchItem> batch) {
  assert(!batch.empty() && static_cast<TokenPos>(batch.size()) <= options_.n_batch);
  if (on_decode) on_decode(batch);
  if (fail_next_ != DecodeStatus::ok) return std::exchange(fail_next_, DecodeStatus::ok);
  last_visible_.assign(batch.size(), 0);
  // What a batch may take are the cells that the window had left behind before it, as in llama.cpp.
  for (const BatchItem& item : batch) {
    seq(item.seq).window_begin = std::max(seq(item.seq).window_begin, length(item.seq) - options_.window);
  }
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const BatchItem& item = batch[i];
    Seq& s = seq(item.seq);
    assert(item.pos == length(item.seq) && !s.cells_only);
    std::size_t cell = 0;
    if (!take_cell(cell)) return DecodeStatus::no_cells;
    cells_[cell] = {item.pos, kv_of(item.token, item.pos, s.seen()), {}};
    cells_[cell].seqs.set(static_cast<std::size_t>(item.seq.value));
    s.cells.push_back(cell);
    s.visible += cells_[cell].kv;
    last_visible_[i] = s.seen();
    ++tokens_evaluated_;
  }
  return DecodeStatus::ok;
}

std::vector<std::byte> FakeRunner::save(SeqId id, TokenPos begin, TokenPos end, SaveKind kind) {
  if (on_save) on_save();
  assert(0 <= begin && begin < end && end <= length(id));
  std::vector<std::byte> bytes;
  const auto put = [&](std::uint64_t value) {
    const auto* from = reinterpret_cast<const std::byte*>(&value);
    bytes.insert(bytes.end(), from, from + sizeof value);
  };
  const Seq& s = seq(id);
  for (TokenPos pos = begin; pos < end; ++pos) put(cells_[s.cells[static_cast<std::size_t>(pos)]].kv);
  if (options_.rewind == Rewind::anywhere || kind == SaveKind::cells) return bytes;
  assert(can_resume(id, length(id), end));
  std::uint64_t state = s.wrong_state;
  for (TokenPos pos = 0; pos < end; ++pos) state += cells_[s.cells[static_cast<std::size_t>(pos)]].kv;
  put(state);
  return bytes;
}

// Cells with these KV values. REQUIRES: there are as many free ones.
void FakeRunner::append(SeqId id, std::span<const std::byte> values) {
  Seq& s = seq(id);
  for (; !values.empty(); values = values.subspan(sizeof(std::uint64_t))) {
    std::uint64_t kv = 0;
    std::memcpy(&kv, values.data(), sizeof kv);
    std::size_t cell = 0;
    take_cell(cell);
    cells_[cell] = {length(id), kv, {}};
    cells_[cell].seqs.set(static_cast<std::size_t>(id.value));
    s.cells.push_back(cell);
    s.visible += kv;
    ++tokens_restored_;
  }
}

bool FakeRunner::restore(SeqId id, TokenPos begin, TokenPos end, const Saved& saved) {
  assert(saved.begin <= begin && begin <= end && end <= saved.end && begin == length(id));
  constexpr std::size_t kValue = sizeof(std::uint64_t);
  const auto n = static_cast<std::size_t>(saved.end - saved.begin);
  const bool cells_suffice = options_.rewind == Rewind::anywhere;
  Seq& s = seq(id);
  const bool has_state = !cells_suffice && saved.bytes.size() == (n + 1) * kValue;
  const bool fits = saved.bytes.size() == (has_state ? n + 1 : n) * kValue && (begin == end || free_.size() >= n);
  s.cells_only = !cells_suffice;
  if (std::exchange(refuse_next_restore_, false) || !fits) {
    if (begin == 0) clear(id);
    return false;
  }
  append(id, saved.bytes.subspan(static_cast<std::size_t>(begin - saved.begin) * kValue,
                                 static_cast<std::size_t>(end - begin) * kValue));
  if (!has_state || end < saved.end) return true;
  std::uint64_t state = 0;
  std::memcpy(&state, saved.bytes.data() + n * kValue, kValue);
  s.wrong_state = state - s.visible;
  s.cells_only = false;
  s.window_begin = std::max(0, end - options_.window);
  ++states_restored_;
  return true;
}

Sampled FakeRunner::sample(Sampler&, std::int32_t index, const ProbsOptions& probs) {
  const Token token = next_token(options_, last_visible_.at(static_cast<std::size_t>(index)));
  Sampled sampled{token, 0, {}};
  if (probs.n_probs > 0) sampled.top.push_back({token, 0});
  return sampled;
}

std::unique_ptr<Sampler> FakeRunner::make_sampler() const { return std::make_unique<FakeSampler>(); }

Tokens FakeRunner::generate(const FakeRunnerOptions& options, const Tokens& prompt, std::size_t count) {
  Tokens out;
  std::uint64_t visible = 0;
  TokenPos pos = 0;
  for (Token token : prompt) visible += kv_of(token, pos++, visible);
  while (out.size() < count) {
    out.push_back(next_token(options, visible));
    if (out.back() == kEndOfGeneration) break;
    visible += kv_of(out.back(), pos++, visible);
  }
  return out;
}

Tokens FakeTokenizer::tokenize(std::string_view text, bool, bool) const {
  Tokens tokens;
  while (!text.empty()) {
    if (const std::size_t close = text.find('>'); text[0] == '<' && close != std::string_view::npos) {
      tokens.push_back(std::stoi(std::string(text.substr(1, close - 1))) % n_vocab_);
      text.remove_prefix(close + 1);
    } else {
      tokens.push_back(static_cast<unsigned char>(text[0]) % n_vocab_);
      text.remove_prefix(1);
    }
  }
  return tokens;
}

std::string FakeTokenizer::piece(Token token, bool special) const {
  if (is_end_of_generation(token) && !special) return {};
  std::string text = "<";
  text += std::to_string(token);
  return text += ">";
}

}  // namespace coppice::engine

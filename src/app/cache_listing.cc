#include "app/cache_listing.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "app/sizes.h"
#include "base/json.h"
#include "tier/chains.h"

namespace coppice::app {
namespace {

using tier::CachedBlock;
using tier::CacheReader;
using tier::Chain;

// A time before this is none: earlier formats only counted uses.
constexpr std::uint64_t kTimesBeginUs = 1'000'000'000'000'000;  // 2001

// Text out of a folder may come from another machine: nothing in it may command the terminal.
std::string printable(std::string text, std::size_t size_max) {
  std::ranges::replace_if(text, [](unsigned char c) { return c < 0x20 || c == 0x7f || c >= 0x80; }, '?');
  if (text.size() > size_max) text = text.substr(0, size_max - 2) + "..";
  return text;
}

std::string age_text(std::uint64_t then_us, std::uint64_t now_us) {
  if (then_us < kTimesBeginUs) return "?";
  return human_age(now_us > then_us ? (now_us - then_us) / 1'000'000 : 0);
}

Json time_json(std::uint64_t then_us) { return then_us < kTimesBeginUs ? Json() : Json(then_us / 1'000'000); }

Json model_json(const CacheReader& cache, const tier::BlockId& root) {
  const std::string model = cache.model_of(root);
  return model.empty() ? Json() : Json(model);
}

std::vector<Chain> first_chains(const CacheReader& cache, std::uint64_t limit, std::size_t& total) {
  std::vector<Chain> chains = tier::chains_of(cache.blocks());
  total = chains.size();
  if (limit != 0 && chains.size() > limit) chains.resize(limit);
  return chains;
}

struct RootSum {
  std::uint64_t blocks = 0, bytes = 0, tokens = 0;
};

struct Sums {
  std::map<tier::BlockId, RootSum> roots;
  RootSum all;
  std::uint64_t problems = 0, oldest_us = ~std::uint64_t{0}, newest_us = 0;
  std::uint64_t segment_bytes = 0, segments = 0, segments_written = 0;
  std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> records;  // by kind: how many, bytes
};

Sums sums_of(const CacheReader& cache) {
  Sums sums;
  for (const CachedBlock& block : cache.blocks()) {
    if (!block.problem.empty()) {
      ++sums.problems;
      continue;
    }
    for (RootSum* sum : {&sums.all, &sums.roots[cache.root_of(block)]}) {
      ++sum->blocks;
      sum->bytes += block.row.record_bytes;
      sum->tokens += block.row.block.tokens.size();
    }
    sums.oldest_us = std::min(sums.oldest_us, block.row.use.order);
    sums.newest_us = std::max(sums.newest_us, block.row.use.order);
  }
  for (const auto& [number, segment] : cache.segments()) {
    sums.segment_bytes += segment.bytes;
    sums.segments += segment.bytes > 0 ? 1 : 0;
    sums.segments_written = std::max(sums.segments_written, number);
  }
  for (const tier::RecordChange& record : cache.records()) {
    auto& [count, bytes] = sums.records[record.kind];
    ++count;
    bytes += record.key.size() + record.value->size();
  }
  return sums;
}

std::uint64_t dead_bytes(const Sums& sums) { return sums.segment_bytes - std::min(sums.segment_bytes, sums.all.bytes); }

}  // namespace

std::string chains_text(const CacheReader& cache, std::uint64_t limit, std::uint64_t now_us) {
  std::size_t total = 0;
  const std::vector<Chain> chains = first_chains(cache, limit, total);
  std::string text = fmt::format("{:16}  {:>9}  {:>9}  {:>9}  {:>9}  {:>7}  {:>5}  {}\n", "CONVERSATION", "TOKENS",
                                 "SHARED", "BYTES", "OWN", "USED", "USES", "MODEL");
  for (const Chain& chain : chains) {
    const CachedBlock& last = cache.blocks()[chain.last];
    const tier::BlockId root = cache.root_of(last);
    const std::string model = cache.model_of(root);
    text += fmt::format("{:16}  {:>9}  {:>9}  {:>9}  {:>9}  {:>7}  {:>5}  {}\n", tier::short_hex(last.row.block.id),
                        with_commas(static_cast<std::uint64_t>(chain.tokens)),
                        with_commas(static_cast<std::uint64_t>(chain.shared_tokens)), human_bytes(chain.bytes),
                        human_bytes(chain.own_bytes), age_text(last.row.use.order, now_us), last.row.use.uses,
                        model.empty() ? "root " + tier::short_hex(root) : printable(model, 40));
  }
  if (chains.size() < total) text += fmt::format("{} of {} (--limit 0 shows all)\n", chains.size(), total);
  return text;
}

Json chains_json(const CacheReader& cache, std::uint64_t limit) {
  std::size_t total = 0;
  Json list = Json::array();
  for (const Chain& chain : first_chains(cache, limit, total)) {
    const CachedBlock& last = cache.blocks()[chain.last];
    const tier::BlockId root = cache.root_of(last);
    list.push_back({{"id", tier::hex(last.row.block.id)},
                    {"root", tier::hex(root)},
                    {"model", model_json(cache, root)},
                    {"tokens", chain.tokens},
                    {"shared_tokens", chain.shared_tokens},
                    {"bytes", chain.bytes},
                    {"own_bytes", chain.own_bytes},
                    {"last_use_s", time_json(last.row.use.order)},
                    {"uses", last.row.use.uses}});
  }
  return {{"conversations", std::move(list)}, {"total", total}};
}

std::string sums_text(const CacheReader& cache, std::uint64_t now_us) {
  const Sums sums = sums_of(cache);
  std::string text =
      fmt::format("conversations  {}\n", with_commas(tier::chains_of(cache.blocks()).size())) +
      fmt::format("tokens         {} in {} blocks\n", with_commas(sums.all.tokens), with_commas(sums.all.blocks)) +
      fmt::format("on disk        {} in {} segments: {} live, {} dead\n", human_bytes(sums.segment_bytes),
                  sums.segments, human_bytes(sums.all.bytes), human_bytes(dead_bytes(sums))) +
      fmt::format("written so far {} segments\n", with_commas(sums.segments_written));
  if (sums.all.blocks > 0) {
    text += fmt::format("last used      {} to {} ago\n", age_text(sums.newest_us, now_us),
                        age_text(sums.oldest_us, now_us));
  }
  if (sums.problems > 0) text += fmt::format("unusable rows  {} (see coppice cache verify)\n", sums.problems);
  for (const auto& [root, sum] : sums.roots) {
    const std::string model = cache.model_of(root);
    text += fmt::format("root {}  {} in {} blocks  {}\n", tier::short_hex(root), human_bytes(sum.bytes),
                        with_commas(sum.blocks), printable(model, 200));
  }
  for (const auto& [kind, sum] : sums.records) {
    text += fmt::format("records        {} of kind {}, {}\n", with_commas(sum.first), printable(kind, 40),
                        human_bytes(sum.second));
  }
  return text;
}

Json sums_json(const CacheReader& cache) {
  const Sums sums = sums_of(cache);
  Json roots = Json::array(), records = Json::object();
  for (const auto& [root, sum] : sums.roots) {
    roots.push_back({{"root", tier::hex(root)},
                     {"model", model_json(cache, root)},
                     {"blocks", sum.blocks},
                     {"tokens", sum.tokens},
                     {"bytes", sum.bytes}});
  }
  for (const auto& [kind, sum] : sums.records) records[kind] = {{"count", sum.first}, {"bytes", sum.second}};
  return {{"conversations", tier::chains_of(cache.blocks()).size()},
          {"blocks", sums.all.blocks},
          {"tokens", sums.all.tokens},
          {"segments", sums.segments},
          {"segments_written", sums.segments_written},
          {"segment_bytes", sums.segment_bytes},
          {"live_bytes", sums.all.bytes},
          {"dead_bytes", dead_bytes(sums)},
          {"unusable_rows", sums.problems},
          {"newest_use_s", sums.all.blocks > 0 ? time_json(sums.newest_us) : Json()},
          {"oldest_use_s", sums.all.blocks > 0 ? time_json(sums.oldest_us) : Json()},
          {"roots", std::move(roots)},
          {"records", std::move(records)}};
}

}  // namespace coppice::app

#include "app/cache_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>
#include <utility>

#include "app/cache_listing.h"
#include "app/cache_options.h"
#include "app/progress.h"
#include "app/sizes.h"
#include "base/json.h"
#include "base/json_text.h"
#include "tier/cache_check.h"
#include "tier/cache_editor.h"
#include "tier/cache_reader.h"
#include "tier/export.h"
#include "tier/import.h"

namespace coppice::app {
namespace {

constexpr int kFine = 0, kWrong = 1, kWrongUsage = 2;
constexpr std::size_t kBadShown = 20;

// A bar while something long is done; nothing where nobody looks.
class Bar {
 public:
  Bar(const CacheConsole& console, const char* what)
      : shown_(console.terminal), progress_(console.err, console.clock, true, what) {}
  ~Bar() { progress_.finish(); }
  Bar(const Bar&) = delete;
  Bar& operator=(const Bar&) = delete;
  tier::OnProgress callback() {
    return [this](std::uint64_t done, std::uint64_t total) {
      if (shown_ && total > 0) progress_.show(static_cast<float>(done) / static_cast<float>(total));
    };
  }

 private:
  const bool shown_;
  Progress progress_;
};

int failed(const CacheConsole& console, const Error& error) {
  console.err << "coppice: " << error.message << '\n' << std::flush;
  return kWrong;
}

void print(const CacheConsole& console, const CacheOptions& options, const Json& json, const std::string& text) {
  console.out << (options.json ? to_text(json) + "\n" : text) << std::flush;
}

std::string plural(std::uint64_t n, std::string_view noun) {
  return fmt::format("{} {}{}", with_commas(n), noun, n == 1 ? "" : "s");
}

int list(const CacheConsole& console, const CacheOptions& options) {
  const auto cache = tier::CacheReader::open(console.files, options.dir);
  if (!cache) return failed(console, cache.error());
  if (options.action == CacheAction::stat) {
    print(console, options, sums_json(*cache), sums_text(*cache, console.now_us));
  } else {
    print(console, options, chains_json(*cache, options.limit), chains_text(*cache, options.limit, console.now_us));
  }
  return kFine;
}

Result<tier::RepairResult> check(const CacheConsole& console, const CacheOptions& options) {
  Bar bar(console, "checking");
  if (options.repair) return tier::repair_cache(console.files, options.dir, bar.callback());
  auto found = tier::check_cache(console.files, options.dir, bar.callback());
  if (!found) return std::unexpected(found.error());
  return tier::RepairResult{.found = std::move(*found)};
}

int verify(const CacheConsole& console, const CacheOptions& options) {
  const auto result = check(console, options);
  if (!result) return failed(console, result.error());
  const tier::CheckResult& found = result->found;
  Json bad = Json::array();
  std::string text;
  for (const tier::BadBlock& block : found.bad) {
    bad.push_back(
        {{"id", tier::hex(block.id)}, {"segment", block.segment}, {"offset", block.offset}, {"reason", block.reason}});
    if (bad.size() > kBadShown) continue;
    text += fmt::format("bad  {}  segment {} at {}: {}\n", tier::short_hex(block.id), block.segment, block.offset,
                        block.reason);
  }
  if (bad.size() > kBadShown) text += fmt::format("and {} more (--json names all)\n", bad.size() - kBadShown);
  if (!found.index_problem.empty()) text += found.index_problem + "\n";
  text += fmt::format("{} read, {}: {}\n", plural(found.blocks, "good block"), human_bytes(found.bytes),
                      bad.empty() && found.index_problem.empty()
                          ? "all is well"
                          : fmt::format("{} bad, {} that go on from them", bad.size(), found.lost));
  if (found.gone > 0) text += fmt::format("{} given up by the server meanwhile\n", plural(found.gone, "block"));
  if (options.repair) text += fmt::format("{} removed\n", plural(result->removed, "block"));
  const bool well = found.bad.empty() && found.index_problem.empty();
  print(console, options,
        {{"blocks", found.blocks},
         {"bytes", found.bytes},
         {"gone", found.gone},
         {"bad", std::move(bad)},
         {"lost", found.lost},
         {"index_problem", found.index_problem.empty() ? Json() : Json(found.index_problem)},
         {"removed", result->removed}},
        text);
  return well || options.repair ? kFine : kWrong;
}

int prune(const CacheConsole& console, const CacheOptions& options) {
  std::uint64_t record_bytes_max = 0;
  TokenPos block_tokens = 1;
  {
    const auto cache = tier::CacheReader::open(console.files, options.dir);
    if (!cache) return failed(console, cache.error());
    for (const auto& block : cache->blocks()) {
      if (block.problem.empty()) record_bytes_max = std::max(record_bytes_max, block.row.record_bytes);
    }
    block_tokens = std::max(block_tokens, cache->tokens_max());
  }
  auto editor = tier::CacheEditor::open(console.files, options.dir, block_tokens, record_bytes_max);
  if (!editor) return failed(console, editor.error());
  tier::PruneLimits limits{.used_since_us = {}, .keep_bytes = options.keep_bytes};
  if (options.older_than_s) {
    limits.used_since_us = console.now_us - std::min(console.now_us, *options.older_than_s * 1'000'000);
  }
  const std::uint64_t before = editor->segment_bytes();
  auto removed = editor->prune(limits);
  if (!removed) return failed(console, removed.error());
  Result<tier::Removed> bad;
  {
    Bar bar(console, "compacting");
    bad = editor->compact(bar.callback());
  }
  const std::uint64_t bad_blocks = bad ? bad->blocks : 0;
  const std::uint64_t now = editor->segment_bytes();
  std::string text = fmt::format("{} removed, {}; on disk {} -> {}\n", plural(removed->blocks, "block"),
                                 human_bytes(removed->bytes), human_bytes(before), human_bytes(now));
  if (bad_blocks > 0) text += fmt::format("{} found bad and removed too\n", plural(bad_blocks, "block"));
  print(console, options,
        {{"removed_blocks", removed->blocks},
         {"removed_bytes", removed->bytes},
         {"bad_blocks", bad_blocks},
         {"segment_bytes_before", before},
         {"segment_bytes", now}},
        text);
  if (!bad) return failed(console, bad.error());  // the blocks are gone all the same, and not all of their bytes
  return kFine;
}

Result<tier::Exported> export_chosen(const CacheConsole& console, const CacheOptions& options) {
  auto cache = tier::CacheReader::open(console.files, options.dir);
  if (!cache) return std::unexpected(cache.error());
  Bar bar(console, "exporting");
  return tier::export_cache(*cache, *console.files, options.chains, options.file, bar.callback());
}

int export_file(const CacheConsole& console, const CacheOptions& options) {
  const auto exported = export_chosen(console, options);
  if (!exported) return failed(console, exported.error());
  std::string text = fmt::format("{}, {}, and {} written to {}\n", plural(exported->blocks, "block"),
                                 human_bytes(exported->bytes), plural(exported->records, "record"), options.file);
  if (exported->bad > 0) {
    text += fmt::format("{} left out, with what goes on from there (see coppice cache verify)\n",
                        plural(exported->bad, "bad block"));
  }
  if (exported->gone > 0) text += fmt::format("{} given up by the server meanwhile\n", plural(exported->gone, "block"));
  print(console, options,
        {{"blocks", exported->blocks},
         {"bytes", exported->bytes},
         {"records", exported->records},
         {"bad", exported->bad},
         {"gone", exported->gone}},
        text);
  return exported->bad == 0 ? kFine : kWrong;
}

int import_into(const CacheConsole& console, const CacheOptions& options) {
  Result<tier::Imported> imported;
  {
    Bar bar(console, "importing");
    imported = tier::import_file(console.files, options.file, options.dir, options.mix, bar.callback());
  }
  if (!imported) return failed(console, imported.error());
  const auto& [blocks, records, known_records, refused_records] = *imported;
  std::string text = fmt::format("{}, {}, and {} taken in; {} and {} were there\n", plural(blocks.blocks, "block"),
                                 human_bytes(blocks.bytes), plural(records, "record"), plural(blocks.known, "block"),
                                 plural(known_records, "record"));
  if (blocks.misfit > 0)
    text += fmt::format("{} left out: what they go on from is missing\n", plural(blocks.misfit, "block"));
  if (refused_records > 0)
    text += fmt::format("{} left out: there is no room for them\n", plural(refused_records, "record"));
  print(console, options,
        {{"blocks", blocks.blocks},
         {"bytes", blocks.bytes},
         {"known_blocks", blocks.known},
         {"misfit_blocks", blocks.misfit},
         {"records", records},
         {"known_records", known_records},
         {"refused_records", refused_records}},
        text);
  return blocks.misfit == 0 && refused_records == 0 ? kFine : kWrong;
}

}  // namespace

int run_cache(const std::vector<std::string>& args, const CacheConsole& console) {
  const auto options = parse_cache(args);
  if (!options) {
    const std::string& of = options.error().param;
    console.err << "coppice: " << options.error().message << "\nSee: coppice cache " << of << (of.empty() ? "" : " ")
                << "--help\n"
                << std::flush;
    return kWrongUsage;
  }
  switch (options->action) {
    case CacheAction::help: console.out << options->help << std::flush; return kFine;
    case CacheAction::ls:
    case CacheAction::stat: return list(console, *options);
    case CacheAction::verify: return verify(console, *options);
    case CacheAction::prune: return prune(console, *options);
    case CacheAction::export_file: return export_file(console, *options);
    case CacheAction::import_file: return import_into(console, *options);
  }
  return kWrongUsage;
}

}  // namespace coppice::app

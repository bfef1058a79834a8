#include "app/cache_options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <utility>

#include "app/sizes.h"

namespace coppice::app {
namespace {

constexpr const char* kAbout =
    "Looks after a cache folder (--cache-disk). ls, stat, verify and export work while a server uses it;\n"
    "prune, import and verify --repair need it for themselves.\n"
    "Exit status: 0 fine, 1 something is wrong, 2 wrong usage.";

// As they were written; read once the command is known to be well formed.
struct Texts {
  std::string limit, older_than, keep_bytes;
};

Result<CacheOptions> read_texts(CacheOptions options, const Texts& texts) {
  if (!texts.limit.empty()) {
    const auto limit = parse_int(texts.limit, 0, 1'000'000'000);
    if (!limit) return invalid("--limit: " + limit.error().message, "ls");
    options.limit = static_cast<std::uint64_t>(*limit);
  }
  if (!texts.older_than.empty()) {
    const auto age_s = parse_age(texts.older_than);
    if (!age_s) return invalid("--older-than: " + age_s.error().message, "prune");
    options.older_than_s = *age_s;
  }
  if (!texts.keep_bytes.empty()) {
    const auto bytes = parse_size(texts.keep_bytes);
    if (!bytes) return invalid("--keep-bytes: " + bytes.error().message, "prune");
    options.keep_bytes = *bytes;
  }
  if (options.action == CacheAction::prune && !options.older_than_s && !options.keep_bytes) {
    return invalid("prune needs --older-than or --keep-bytes", "prune");
  }
  return options;
}

void declare(CLI::App& app, CacheOptions& options, Texts& texts) {
  const auto command = [&](const char* name, const char* about, CacheAction action) {
    CLI::App* sub = app.add_subcommand(name, about);
    sub->add_option("DIR", options.dir, "the cache folder")->required();
    sub->add_flag("--json", options.json, "for scripts: one JSON object; bytes, seconds and full names");
    sub->callback([&options, action] { options.action = action; });
    return sub;
  };
  CLI::App* ls = command("ls", "list conversations, the one used last first", CacheAction::ls);
  ls->add_option("--limit", texts.limit, "how many; 0: all (default: 20)")->type_name("N");
  command("stat", "what the folder holds in all", CacheAction::stat);
  CLI::App* verify = command("verify", "read every block and check it", CacheAction::verify);
  verify->add_flag("--repair", options.repair, "remove what is bad, with all that goes on from it");
  CLI::App* prune = command("prune", "remove what was not used for long, and give its bytes back", CacheAction::prune);
  prune->add_option("--older-than", texts.older_than, "what was last used longer ago than this: 12h, 30d, 2w")
      ->type_name("AGE");
  prune
      ->add_option("--keep-bytes", texts.keep_bytes,
                   "of the rest, what was used longest ago, until so much is left: 512MiB, 8GiB")
      ->type_name("SIZE");
  CLI::App* out = command("export", "write blocks to one file, to carry them along", CacheAction::export_file);
  out->add_option("FILE", options.file, "the file, which must not be there yet")->required();
  out->add_option("--chain", options.chains, "only this conversation, by (the beginning of) its name in ls; repeatable")
      ->type_name("NAME")
      ->expected(1)
      ->take_all();
  CLI::App* in = command("import", "take in the blocks of such a file", CacheAction::import_file);
  in->add_option("FILE", options.file, "the file")->required();
  in->add_flag("--mix", options.mix, "also into a folder whose blocks are all of other models");
}

bool has_command(CLI::App& app, const std::string& name) {
  return std::ranges::any_of(app.get_subcommands({}), [&](const CLI::App* sub) { return sub->get_name() == name; });
}

}  // namespace

Result<CacheOptions> parse_cache(const std::vector<std::string>& args) {
  CacheOptions options;
  Texts texts;
  try {
    CLI::App app(kAbout, "coppice cache");
    app.require_subcommand(1);
    declare(app, options, texts);
    if (!args.empty() && !args.front().starts_with('-') && !has_command(app, args.front())) {
      return invalid("there is no command '" + args.front() + "'");
    }
    std::vector<std::string> reversed(args.rbegin(), args.rend());  // as CLI11 wants them
    try {
      app.parse(std::move(reversed));
    } catch (const CLI::CallForHelp&) {
      options.action = CacheAction::help;
      options.help = app.help();
      return options;
    } catch (const CLI::ParseError& error) {
      const auto subs = app.get_subcommands();
      return invalid(error.what(), subs.empty() ? "" : subs.front()->get_name());
    }
  } catch (const CLI::Error& error) {
    return fail(ErrorKind::internal, error.what());
  }
  return read_texts(std::move(options), texts);
}

}  // namespace coppice::app

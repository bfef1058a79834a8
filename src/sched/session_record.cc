#include "sched/session_record.h"

#include <charconv>
#include <nlohmann/json.hpp>

namespace coppice::sched {
namespace {

constexpr std::size_t kHexDigits = 2 * std::tuple_size_v<tier::BlockId>;

std::optional<tier::BlockId> read_hex(std::string_view digits) {
  tier::BlockId id{};
  if (digits.size() != kHexDigits) return std::nullopt;
  for (std::size_t i = 0; i < id.size(); ++i) {
    const char* begin = digits.data() + 2 * i;
    const auto [end, error] = std::from_chars(begin, begin + 2, id[i], 16);
    if (error != std::errc{} || end != begin + 2) return std::nullopt;
  }
  return id;
}

std::optional<kv::SessionKey> read_key(std::string_view key) {
  kv::SessionKey read;
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), read.ns.value);
  const auto slash = static_cast<std::size_t>(end - key.data());
  if (error != std::errc{} || slash == key.size() || key[slash] != '/') return std::nullopt;
  const std::size_t second = key.find('/', slash + 1);
  if (second == std::string_view::npos || second + 1 == key.size()) return std::nullopt;
  read.name = key.substr(second + 1);
  return read;
}

}  // namespace

std::string record_key(const kv::SessionKey& key, const tier::BlockId& root) {
  return std::to_string(key.ns.value) + "/" + tier::short_hex(root) + "/" + key.name;
}

std::string to_text(const SessionRecord& record) {
  std::string blocks;
  for (const tier::BlockId& id : record.blocks) blocks += tier::hex(id);
  const nlohmann::json out = {{"version", 1},
                              {"root", tier::hex(record.root)},
                              {"parent", record.parent},
                              {"requests", record.requests},
                              {"last_use_us", record.last_use_us},
                              {"blocks", blocks},
                              {"tail", record.tail}};
  return out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::optional<SessionRecord> read_session_record(std::string_view key, std::string_view text) {
  auto name = read_key(key);
  if (!name) return std::nullopt;
  try {
    const auto in = nlohmann::json::parse(text);
    if (in.at("version") != 1) return std::nullopt;
    const auto root = read_hex(in.at("root").get_ref<const std::string&>());
    if (!root) return std::nullopt;
    SessionRecord record{.key = *std::move(name),
                         .root = *root,
                         .parent = in.at("parent"),
                         .requests = in.at("requests"),
                         .last_use_us = in.at("last_use_us"),
                         .blocks = {},
                         .tail = in.at("tail").get<Tokens>()};
    const std::string_view blocks = in.at("blocks").get_ref<const std::string&>();
    if (blocks.size() % kHexDigits != 0) return std::nullopt;
    for (std::size_t at = 0; at < blocks.size(); at += kHexDigits) {
      const auto id = read_hex(blocks.substr(at, kHexDigits));
      if (!id) return std::nullopt;
      record.blocks.push_back(*id);
    }
    if (record.blocks.empty() && record.tail.empty()) return std::nullopt;
    return record;
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

}  // namespace coppice::sched

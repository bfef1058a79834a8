#include "sched/pool_record.h"

#include <nlohmann/json.hpp>

namespace coppice::sched {

std::string to_text(const PoolRecord& record) {
  const nlohmann::json out = {{"version", 1},
                              {"name", record.name},
                              {"ns", record.ns.value},
                              {"fingerprint", record.fingerprint},
                              {"tokens", record.tokens}};
  return out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::optional<PoolRecord> read_pool_record(std::string_view text) {
  try {
    const auto in = nlohmann::json::parse(text);
    if (in.at("version") != 1) return std::nullopt;
    PoolRecord record{.name = in.at("name"),
                      .ns = NamespaceId{in.at("ns").get<std::uint64_t>()},
                      .fingerprint = in.at("fingerprint"),
                      .tokens = in.at("tokens").get<Tokens>()};
    if (record.name.empty() || record.tokens.empty()) return std::nullopt;
    return record;
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

}  // namespace coppice::sched

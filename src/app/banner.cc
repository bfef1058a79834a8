#include "app/banner.h"

#include <fmt/format.h>

#include "app/sizes.h"

namespace coppice::app {
namespace {

std::string row(std::string_view name, std::string_view value) { return fmt::format("  {:<9}{}\n", name, value); }

// Inside single quotes in a shell, and inside a JSON string in there.
std::string quoted_for_json_in_shell(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) >= 0x20) {
      out += c;
    }
  }
  return out;
}

}  // namespace

std::string base_url(const std::string& host, std::uint16_t port) {
  std::string shown = host;
  if (host == "0.0.0.0") shown = "127.0.0.1";
  if (host == "::") shown = "::1";
  if (shown.find(':') != std::string::npos && !shown.starts_with('[')) shown = "[" + shown + "]";
  return fmt::format("http://{}:{}", shown, port);
}

std::string curl_line(const BannerFacts& facts) {
  const std::string key = facts.needs_key ? " -H 'Authorization: Bearer YOUR-KEY'" : "";
  return fmt::format(
      "curl -s {}/v1/chat/completions -H 'Content-Type: application/json'{} \\\n    -d '{{\"model\": \"{}\", "
      "\"messages\": [{{\"role\": \"user\", \"content\": \"Hello\"}}]}}'",
      base_url(facts.host, facts.port), key, quoted_for_json_in_shell(facts.model_id));
}

std::string banner(const BannerFacts& facts) {
  std::string out = fmt::format("\nCoppice {} is serving {}\n\n", facts.version, facts.model_name);
  out += row("model",
             fmt::format("{}, {} parameters, {}", facts.architecture, human_count(facts.n_params), facts.model_path));
  if (facts.built_in_model) {
    out += row("", "This is the tiny built-in test model. Name one of yours with -m FILE.gguf or -hf USER/MODEL.");
  }
  out += row("context",
             fmt::format("{} tokens, shared by {} slot{} (trained for {})",
                         with_commas(static_cast<std::uint64_t>(facts.n_ctx)), facts.n_slots,
                         facts.n_slots == 1 ? "" : "s", with_commas(static_cast<std::uint64_t>(facts.n_ctx_train))));
  out += row("memory", fmt::format("model {}, KV cache {}", human_bytes(facts.model_bytes),
                                   facts.kv_bytes == 0 ? "unknown" : human_bytes(facts.kv_bytes)));
  for (std::size_t i = 0; i < facts.devices.size(); ++i) out += row(i == 0 ? "devices" : "", facts.devices[i]);
  out += row("threads", std::to_string(facts.n_threads));
  out += row("address",
             base_url(facts.host, facts.port) +
                 (facts.host == "0.0.0.0" || facts.host == "::" ? " and every other address of this machine" : ""));
  out += fmt::format("\nTry it:\n  {}\n\nStop it with Ctrl-C.\n\n", curl_line(facts));
  return out;
}

}  // namespace coppice::app

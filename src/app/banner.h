// What people read when the server is up. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace coppice::app {

struct BannerFacts {
  std::string version;  // "0.1.0"
  std::string model_name, model_path, architecture, model_id;
  std::uint64_t n_params = 0, model_bytes = 0, kv_bytes = 0;
  std::int32_t n_ctx = 0, n_ctx_train = 0, n_slots = 0, n_threads = 0;
  std::vector<std::string> devices;
  std::string host;
  std::uint16_t port = 0;
  bool built_in_model = false, needs_key = false;
};

std::string banner(const BannerFacts& facts);

// "http://127.0.0.1:8080", "http://[::1]:8080"; an address that means "all" becomes one that can be typed.
std::string base_url(const std::string& host, std::uint16_t port);

// A shell line that gets an answer from the server.
std::string curl_line(const BannerFacts& facts);

}  // namespace coppice::app

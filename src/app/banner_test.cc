#include "app/banner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace coppice::app {
namespace {

using testing::HasSubstr;
using testing::Not;

BannerFacts facts() {
  BannerFacts f;
  f.version = "0.1.0";
  f.model_name = "Acorn 8B";
  f.model_path = "/models/acorn.gguf";
  f.architecture = "qwen3";
  f.model_id = "acorn";
  f.n_params = 8'190'000'000ULL;
  f.model_bytes = 5'000'000'000ULL;
  f.kv_bytes = 1ULL << 30;
  f.n_ctx = 131072;
  f.n_ctx_train = 262144;
  f.n_slots = 4;
  f.n_threads = 8;
  f.devices = {"CPU: Some Processor"};
  f.host = "127.0.0.1";
  f.port = 8080;
  return f;
}

TEST(Banner, SaysWhatWasLoadedAndWhere) {
  const std::string text = banner(facts());
  for (const char* part :
       {"0.1.0", "Acorn 8B", "/models/acorn.gguf", "qwen3", "8.2B parameters", "131,072 tokens", "4 slots", "262,144",
        "model 4.7 GiB", "KV cache 1.0 GiB", "CPU: Some Processor", "http://127.0.0.1:8080", "curl "}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  EXPECT_THAT(text, Not(HasSubstr("test model")));
  EXPECT_THAT(text, Not(HasSubstr("Authorization")));
}

TEST(Banner, SaysThatTheBuiltInModelIsATestModel) {
  BannerFacts f = facts();
  f.built_in_model = true;
  f.n_slots = 1;
  EXPECT_THAT(banner(f), HasSubstr("test model"));
  EXPECT_THAT(banner(f), HasSubstr("1 slot "));
}

TEST(Banner, TheCurlLineCarriesAKeyWhenOneIsNeeded) {
  BannerFacts f = facts();
  f.needs_key = true;
  EXPECT_THAT(curl_line(f), HasSubstr("Authorization: Bearer"));
}

TEST(Banner, TheCurlLineSurvivesStrangeModelNames) {
  BannerFacts f = facts();
  f.model_id = "it's \"mine\"\n";
  EXPECT_THAT(curl_line(f), HasSubstr(R"("model": "it'\''s \"mine\"")"));
}

TEST(Banner, UrlsCanBeTyped) {
  EXPECT_EQ(base_url("::1", 80), "http://[::1]:80");
  EXPECT_EQ(base_url("0.0.0.0", 80), "http://127.0.0.1:80");
  EXPECT_EQ(base_url("::", 80), "http://[::1]:80");
  EXPECT_EQ(base_url("myhost", 80), "http://myhost:80");
}

}  // namespace
}  // namespace coppice::app

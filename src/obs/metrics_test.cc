#include "obs/metrics.h"

#include <gtest/gtest.h>
#include <prometheus/counter.h>
#include <prometheus/gauge.h>

namespace coppice::obs {
namespace {

TEST(Metrics, D_NamesThatOutsideChecksRelyOn) {
  Metrics metrics;
  metrics.kv_cells_used.Set(7);
  metrics.prompt_tokens_computed.Increment(3);
  metrics.prompt_tokens_reused[1]->Increment(5);
  const std::string text = metrics.text();
  EXPECT_NE(text.find("\ncoppice_kv_cells_used 7\n"), std::string::npos);
  EXPECT_NE(text.find("\ncoppice_kv_cells_total 0\n"), std::string::npos);
  EXPECT_NE(text.find("\ncoppice_prompt_tokens_computed_total 3\n"), std::string::npos);
  EXPECT_NE(text.find("coppice_prompt_tokens_reused_total{source=\"donor\"} 5\n"), std::string::npos);
  for (const char* source : {"slot", "pool", "host", "disk"}) {
    EXPECT_NE(text.find("source=\"" + std::string(source) + "\"} 0\n"), std::string::npos) << source;
  }
}

TEST(Metrics, LabelledCountersAddUp) {
  Metrics metrics;
  metrics.count_miss("diverged");
  metrics.count_miss("diverged");
  metrics.count_http(404);
  EXPECT_NE(metrics.text().find("coppice_prefix_misses_total{reason=\"diverged\"} 2\n"), std::string::npos);
  EXPECT_NE(metrics.text().find("coppice_http_responses_total{code=\"404\"} 1\n"), std::string::npos);
}

}  // namespace
}  // namespace coppice::obs

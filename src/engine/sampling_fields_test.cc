// The table of sampling fields, through SamplerFactory: what is taken and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "engine/demo_model_for_test.h"

namespace coppice::engine {
namespace {

using testing::demo;
using ::testing::HasSubstr;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The value that `name` has for a body with just it; null where the body is refused.
Json effective(const std::string& name, const Json& value, const std::string& shown_as = {}) {
  const Json body = {{name, value}};
  const auto made = demo().samplers->make(body, {});
  if (!made) return nullptr;
  return demo().samplers->settings(body).at(shown_as.empty() ? name : shown_as);
}

struct Case {
  const char* name;
  Json given, effective;
};
const Case kTaken[] = {
    {"temperature", 0.5, 0.5},
    {"temperature", 0, 0},
    {"temperature", 1e-30, 0},
    {"dynatemp_range", 0.25, 0.25},
    {"dynatemp_exponent", 1.5, 1.5},
    {"top_k", 7, 7},
    {"top_k", 7.0, 7},
    {"top_k", -1, -1},
    {"top_p", 0.5, 0.5},
    {"min_p", 0.25, 0.25},
    {"top_n_sigma", 1.5, 1.5},
    {"xtc_probability", 0.5, 0.5},
    {"xtc_threshold", 0.5, 0.5},
    {"typical_p", 0.5, 0.5},
    {"repeat_last_n", 10, 10},
    {"repeat_last_n", 0, 0},
    {"repeat_last_n", -1, 1024},
    {"repeat_last_n", 2147483647, 1024},
    {"repeat_penalty", 1.5, 1.5},
    {"presence_penalty", -0.5, -0.5},
    {"frequency_penalty", 0.5, 0.5},
    {"dry_multiplier", 0.5, 0.5},
    {"dry_base", 2, 2},
    {"dry_base", 0, 1.75},
    {"dry_allowed_length", 5, 5},
    {"dry_penalty_last_n", 100, 100},
    {"dry_penalty_last_n", -1, 1024},
    {"dry_sequence_breakers", {"\n", "x"}, {"\n", "x"}},
    {"mirostat", 2, 2},
    {"mirostat_tau", 4, 4},
    {"mirostat_eta", 0.5, 0.5},
    {"adaptive_target", 0.5, 0.5},
    {"adaptive_decay", 0.5, 0.5},
    {"min_keep", 3, 3},
    {"min_keep", 1'000'000'000, 1'000'000'000},
    {"seed", 42, 42},
    {"seed", -1, 4294967295},
    {"samplers", {"top_k", "Min-P", "temp"}, {"top_k", "min_p", "temperature"}},
    {"samplers", "kpt", {"top_k", "top_p", "temperature"}},
    {"samplers", Json::array(), Json::array()},
    {"ignore_eos", false, false},
    {"grammar", "root ::= \"a\"", "root ::= \"a\""},
    {"reasoning_budget_tokens", 100, 100},
};

TEST(SamplingFields, AreTakenInRange) {
  for (const Case& c : kTaken) {
    const Json got = effective(c.name, c.given);
    if (c.effective.is_number() && got.is_number()) {
      EXPECT_FLOAT_EQ(got.get<float>(), c.effective.get<float>()) << c.name << " = " << c.given;
    } else {
      EXPECT_EQ(got, c.effective) << c.name << " = " << c.given;
    }
  }
  EXPECT_EQ(effective("typ_p", 0.5, "typical_p"), 0.5);
}

const std::pair<const char*, Json> kRefused[] = {
    {"temperature", -5},
    {"temperature", 1e30},
    {"dynatemp_range", -1},
    {"dynatemp_exponent", -1e30},
    {"top_k", 1'000'000'000'000'000'000},
    {"top_k", 1e300},
    {"top_p", 2},
    {"min_p", -1},
    {"top_n_sigma", -100},
    {"xtc_probability", 7},
    {"xtc_threshold", -7},
    {"presence_penalty", 1e30},
    {"frequency_penalty", -1e30},
    {"dry_multiplier", -1},
    {"dry_base", -1e30},
    {"dry_base", 1e30},
    {"mirostat", 7},
    {"mirostat", -3},
    {"adaptive_target", -1e30},
    {"seed", 9223372036854775808U},
    {"seed", 4294967297},
    {"repeat_last_n", -2},
    {"repeat_penalty", 0},
    {"repeat_penalty", -1},
    {"repeat_penalty", 1e38},
    {"repeat_penalty", 1e-38},
    {"dry_penalty_last_n", -2},
    {"dry_allowed_length", -1},
    {"adaptive_decay", 1},
    {"adaptive_decay", -0.1},
    {"min_keep", -1},
    {"top_k", 1.5},
    {"seed", 1.5},
    {"samplers", 5},
    {"samplers", {"top_k", "no_such"}},
    {"samplers", {"top_k", 5}},
    {"samplers", "k?"},
    {"samplers", "日本"},
    {"samplers", std::string(100000, 'k')},
    {"samplers", {"infill"}},
    {"samplers", "ik"},
    {"dry_sequence_breakers", Json::array()},
    {"dry_sequence_breakers", {"a", 1}},
    {"dry_sequence_breakers", {"a", ""}},
    {"dry_sequence_breakers", "a"},
    {"dry_sequence_breakers", std::vector<std::string>(1000, "x")},
    {"logit_bias", 5},
    {"logit_bias", "x"},
    {"logit_bias", {1, 2}},
    {"logit_bias", {{1, "x"}}},
    {"logit_bias", {{1, true}}},
    {"logit_bias", {{1, 2, 3}}},
    {"logit_bias", {{-1, 1}}},
    {"logit_bias", {{1'000'000'000'000, 1}}},
    {"logit_bias", {{1.5, 1}}},
    {"logit_bias", {{"99999999", 1}}},
    {"logit_bias", {{"1", nullptr}}},
    {"logit_bias", std::vector<std::pair<int, int>>(100000, {1, 1})},
    {"logit_bias", {{std::string(100000, 'x'), 1}}},
    {"grammar", 5},
    {"grammar", "root ::= \"a"},
    {"grammar", "%llguidance {}"},
    {"json_schema", "x"},
    {"json_schema", {{"type", "nonsense"}}},
    {"response_format", "json"},
    {"response_format", {{"type", "xml"}}},
    {"response_format", {{"type", "json_schema"}}},
    {"grammar_lazy", "yes"},
    {"reasoning_budget_tokens", -2},
    {"reasoning_budget_tokens", "many"},
    {"thinking_budget_tokens", -2},
    {"reasoning_budget_message", 5},
    {"reasoning_budget_start_tag", 5},
    {"reasoning_budget_end_tags", {1}},
};

TEST(SamplingFields, AreRefusedWithTheirName) {
  for (const auto& [name, value] : kRefused) {
    const auto made = demo().samplers->make({{name, value}}, {});
    ASSERT_FALSE(made.has_value()) << name << " = " << Json(value).dump().substr(0, 100);
    EXPECT_EQ(made.error().kind, ErrorKind::invalid_request);
    EXPECT_EQ(made.error().param, name);
    EXPECT_FALSE(made.error().message.empty());
    EXPECT_NO_THROW(Json(made.error().message).dump()) << "the message goes into a JSON answer";
  }
  EXPECT_EQ(demo().samplers->make({{"grammar_lazy", true}}, {}).error().param, "grammar_triggers");
  EXPECT_FALSE(demo().samplers->make(Json::array(), {}).has_value());
}

TEST(SamplingFields, OfTheWrongTypeAreRefusedAndNullIsTheDefault) {
  const Json defaults = demo().samplers->settings(Json::object());
  const Json wrong[] = {"text", Json::array({true}), Json{{"a", Json::array()}}, kInfinity, -kInfinity, std::nan("")};
  for (const auto& [name, value] : defaults.items()) {
    const Json with_null = {{name, nullptr}};
    EXPECT_TRUE(demo().samplers->make(with_null, {}).has_value()) << name;
    EXPECT_EQ(demo().samplers->settings(with_null), defaults) << name;
    for (const Json& w : wrong) {
      if (name == "samplers" && w.is_string()) continue;  // t, e and x name samplers
      const auto made = demo().samplers->make({{name, w}}, {});
      ASSERT_FALSE(made.has_value()) << name << " = " << w;
      EXPECT_EQ(made.error().kind, ErrorKind::invalid_request);
      EXPECT_THAT(made.error().message, HasSubstr(name));
    }
  }
}

TEST(SamplingFields, SettingsNameWhatLlamaServerNames) {
  const Json settings = demo().samplers->settings(Json::object());
  for (const char* name : {"seed",
                           "temperature",
                           "dynatemp_range",
                           "dynatemp_exponent",
                           "top_k",
                           "top_p",
                           "min_p",
                           "top_n_sigma",
                           "xtc_probability",
                           "xtc_threshold",
                           "typical_p",
                           "repeat_last_n",
                           "repeat_penalty",
                           "presence_penalty",
                           "frequency_penalty",
                           "dry_multiplier",
                           "dry_base",
                           "dry_allowed_length",
                           "dry_penalty_last_n",
                           "dry_sequence_breakers",
                           "mirostat",
                           "mirostat_tau",
                           "mirostat_eta",
                           "adaptive_target",
                           "adaptive_decay",
                           "ignore_eos",
                           "logit_bias",
                           "min_keep",
                           "grammar",
                           "grammar_lazy",
                           "samplers"}) {
    EXPECT_TRUE(settings.contains(name)) << name;
  }
  EXPECT_NO_THROW(demo().samplers->settings({{"ignore_eos", true}}).dump());
  EXPECT_FALSE(demo().samplers->settings({{"ignore_eos", true}}).at("logit_bias").empty());
}

TEST(SamplingFields, DefaultsAreTheServersOwn) {
  testing::DemoModel other(256, {"--temp", "0.25", "--top-k", "3", "--ignore-eos", "--seed", "9"});
  const Json settings = other.samplers->settings(Json::object());
  EXPECT_EQ(settings.at("temperature"), 0.25);
  EXPECT_EQ(settings.at("top_k"), 3);
  EXPECT_EQ(settings.at("seed"), 9);
  EXPECT_EQ(settings.at("ignore_eos"), true);
  EXPECT_FALSE(settings.at("logit_bias").empty());
  EXPECT_TRUE(other.samplers->settings({{"ignore_eos", false}}).at("logit_bias").empty());
}

}  // namespace
}  // namespace coppice::engine

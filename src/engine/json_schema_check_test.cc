#include "engine/json_schema_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"

namespace coppice::engine {
namespace {

using ::testing::HasSubstr;

TEST(JsonSchemaCheck, AcceptsOrdinarySchemas) {
  const char* accepted[] = {
      R"({})",
      R"(true)",
      R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"type":["string","null"]}},"required":["a"]})",
      R"({"$defs":{"node":{"type":"object","properties":{"next":{"$ref":"#/$defs/node"}}}},"$ref":"#/$defs/node"})",
      R"({"allOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"properties":{"x":{}}}}})",
      R"({"$ref":"#/nowhere"})",
      R"({"$ref":"https://example.invalid/schema"})",
      R"({"$ref":"#/bad~pointer"})",
      R"({"$ref":7})",
  };
  for (const char* text : accepted) {
    const auto result = check_json_schema(Json::parse(text), "json_schema");
    EXPECT_TRUE(result.has_value()) << text << ": " << result.error().message;
  }
}

TEST(JsonSchemaCheck, RefusesWhatTheConverterDoesNotSurvive) {
  Json deep = {{"type", "string"}};
  for (int i = 0; i < 200; ++i) deep = Json{{"type", "array"}, {"items", deep}};
  Json wide = {{"type", "object"}};
  for (int i = 0; i < 1000; ++i) wide["properties"]["p" + std::to_string(i)] = Json::object();
  Json doubling = {{"type", "string"}};  // each level is visited twice for each time the one around it is
  for (int i = 0; i < 30; ++i) doubling = Json{{"type", {"object", "object"}}, {"properties", {{"p", doubling}}}};

  const std::pair<Json, std::string> refused[] = {
      {Json("text"), "must be an object"},
      {Json(nullptr), "must be an object"},
      {Json::array({1, 2}), "must be an object"},
      {deep, "nested too deeply"},
      {wide, "more than 300"},
      {doubling, "too large"},
      {Json::parse(R"({"x":{"$ref":"#/x"},"allOf":[{"$ref":"#/x"}]})"), "circular"},
      {Json::parse(R"({"a":{"$ref":"#/b"},"b":{"$ref":"#/a"},"allOf":[{"$ref":"#/a"}]})"), "circular"},
  };
  for (const auto& [schema, reason] : refused) {
    const auto result = check_json_schema(schema, "json_schema");
    ASSERT_FALSE(result.has_value()) << schema.dump().substr(0, 200);
    EXPECT_EQ(result.error().kind, ErrorKind::invalid_request);
    EXPECT_EQ(result.error().param, "json_schema");
    EXPECT_THAT(result.error().message, HasSubstr(reason));
  }
}

TEST(JsonSchemaCheck, MeasuresAnyDepth) {
  Json value = 1;
  for (int i = 0; i < 5; ++i) value = Json::array({value});
  EXPECT_TRUE(json_depth_within(value, 5));
  EXPECT_FALSE(json_depth_within(value, 4));
  EXPECT_TRUE(json_depth_within(Json(1), 0));
}

}  // namespace
}  // namespace coppice::engine

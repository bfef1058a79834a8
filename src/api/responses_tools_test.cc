#include "api/responses_tools.h"

#include <gtest/gtest.h>

#include "base/json.h"

namespace coppice::api {
namespace {

struct Read {
  Json chat = Json::object();
  ToolNames names;
  std::string param;  // of the error, if any
};

Read read_tools_of(const std::string& fields) {
  Read out;
  auto names = read_tools(Json::parse("{" + fields + "}"), out.chat);
  if (names) {
    out.names = *std::move(names);
  } else {
    out.param = names.error().param;
  }
  return out;
}

std::string names_of(const Json& chat) {
  std::string out;
  for (const Json& tool : chat.value("tools", Json::array())) out += tool["function"]["name"].get<std::string>() + " ";
  return out;
}

constexpr const char* kThree =
    R"("tools":[{"type":"function","name":"a","parameters":{}},{"type":"custom","name":"b"},)"
    R"({"type":"namespace","name":"mcp__x","tools":[{"type":"function","name":"c"}]}])";

TEST(ResponsesTools, AFunction) {
  const Read got = read_tools_of(R"("tools":[{"type":"function","name":"grep","description":"finds","strict":true,
      "parameters":{"type":"object","properties":{"q":{"type":"string"}}}}])");
  EXPECT_EQ(got.chat["tools"].dump(), R"([{"type":"function","function":{"name":"grep","description":"finds",)"
                                      R"("parameters":{"type":"object","properties":{"q":{"type":"string"}}}}}])");
  EXPECT_FALSE(got.names.find("grep").custom);
}

TEST(ResponsesTools, ACustomToolTakesOneStringAndIsToldItsGrammar) {
  const Read got = read_tools_of(R"("tools":[{"type":"custom","name":"patch","description":"edits",
      "format":{"type":"grammar","syntax":"lark","definition":"start: x"}}])");
  const Json function = got.chat["tools"][0]["function"];
  EXPECT_EQ(function["parameters"]["required"].dump(), R"(["input"])");
  EXPECT_EQ(function["description"], "edits\n\nThe input must follow this lark grammar:\nstart: x");
  EXPECT_TRUE(got.names.find("patch").custom);
}

TEST(ResponsesTools, TextOfACustomToolGoesThereAndBack) {
  for (const std::string text : {"", "plain", "*** Begin\n+\"quoted\"\\ \t", "\xC3\xA9"}) {
    EXPECT_EQ(custom_input(custom_arguments(text)), text);
  }
  for (const std::string broken : {"", R"({"input":"cut)", R"({"input":3})", R"({"other":"x"})", "[]"}) {
    EXPECT_EQ(custom_input(broken), broken);
  }
}

TEST(ResponsesTools, NamespacesJoinAndComeApartAgain) {
  const Read got =
      read_tools_of(R"("tools":[{"type":"namespace","name":"mcp__files__","tools":[{"type":"function","name":"read"}]},
      {"type":"namespace","name":"web","tools":[{"type":"function","name":"read"},{"type":"custom","name":"js"},{"type":"web_search"}]}])");
  EXPECT_EQ(names_of(got.chat), "mcp__files__read web__read web__js ");
  EXPECT_EQ(got.names.find("mcp__files__read").space, "mcp__files__");
  EXPECT_EQ(got.names.find("web__js").name, "js");
  EXPECT_TRUE(got.names.find("web__js").custom);
  EXPECT_EQ(got.names.flat("web", "read"), "web__read");
  EXPECT_EQ(got.names.flat("gone", "read"), "gone__read") << "calls of tools that are not there any more";
}

TEST(ResponsesTools, NamesThatWouldMeetStayApart) {
  const Read got = read_tools_of(R"("tools":[{"type":"function","name":"a__b"},
      {"type":"namespace","name":"a","tools":[{"type":"function","name":"b"}]},
      {"type":"namespace","name":"a__","tools":[{"type":"function","name":"b"}]}])");
  EXPECT_EQ(names_of(got.chat), "a__b a__b_ a__b__ ");
  EXPECT_EQ(got.names.find("a__b").space, "");
  EXPECT_EQ(got.names.find("a__b_").space, "a");
  EXPECT_EQ(got.names.find("a__b__").space, "a__");
  EXPECT_EQ(got.names.flat("a__", "b"), "a__b__");
}

TEST(ResponsesTools, HostedToolsAreLeftOut) {
  const Read got =
      read_tools_of(R"("tools":[{"type":"web_search"},{"type":"local_shell"},{"type":"mcp","server_label":"x"}])");
  EXPECT_FALSE(got.chat.contains("tools"));
  EXPECT_EQ(got.param, "");
  EXPECT_FALSE(read_tools_of(R"("tools":[])").chat.contains("tools"));
}

TEST(ResponsesTools, Choices) {
  const auto choice = [](const std::string& text) {
    const Read got = read_tools_of(kThree + (R"(,"tool_choice":)" + text));
    return got.param.empty() ? got.chat.value("tool_choice", Json()).dump() + " of " + names_of(got.chat) : got.param;
  };
  const std::string all = " of a b mcp__x__c ";
  EXPECT_EQ(choice("null"), "null" + all);
  EXPECT_EQ(choice(R"("required")"), R"("required")" + all);
  EXPECT_EQ(choice(R"({"type":"function","name":"a"})"), R"({"type":"function","function":{"name":"a"}})" + all);
  EXPECT_EQ(choice(R"({"type":"custom","name":"b"})"), R"({"type":"function","function":{"name":"b"}})" + all);
  EXPECT_EQ(choice(R"({"type":"function","namespace":"mcp__x","name":"c"})"),
            R"({"type":"function","function":{"name":"mcp__x__c"}})" + all);
  EXPECT_EQ(choice(R"({"type":"web_search"})"), "null" + all);
  EXPECT_EQ(choice(R"({"type":"allowed_tools","mode":"required","tools":[{"type":"custom","name":"b"}]})"),
            R"("required" of b )");
  EXPECT_EQ(choice(R"({"type":"allowed_tools","tools":[]})"), R"("auto" of )");
  EXPECT_EQ(choice(R"({"type":"allowed_tools"})"), "tool_choice.tools");
  EXPECT_EQ(choice(R"({"name":"a"})"), "tool_choice.type");
}

TEST(ResponsesTools, ErrorsNameTheField) {
  EXPECT_EQ(read_tools_of(R"("tools":[7])").param, "tools[0]");
  EXPECT_EQ(read_tools_of(R"("tools":[{}])").param, "tools[0].type");
  EXPECT_EQ(read_tools_of(R"("tools":[{"type":"function"}])").param, "tools[0].name");
  EXPECT_EQ(read_tools_of(R"("tools":[{"type":"function","name":"f","description":7}])").param, "tools[0].description");
  EXPECT_EQ(read_tools_of(R"("tools":[{"type":"custom","name":"f","format":{"type":7}}])").param,
            "tools[0].format.type");
  EXPECT_EQ(read_tools_of(R"("tools":[{"type":"namespace","name":"n","tools":7}])").param, "tools[0].tools");
  EXPECT_EQ(read_tools_of(R"("tools":[{"type":"namespace","name":"n","tools":[{"type":"function"}]}])").param,
            "tools[0].tools[0].name");
}

}  // namespace
}  // namespace coppice::api

#include "app/template_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "base/json.h"

namespace coppice::app {
namespace {

using testing::HasSubstr;
using testing::Not;

struct Shown {
  int status = -1;
  std::string out, err;
};

Shown run_on(const std::vector<std::string>& args) {
  std::ostringstream out, err;
  const int status = run_template(args, out, err);
  return {status, out.str(), err.str()};
}

std::string file_of(const std::string& name) { return std::string(COPPICE_TEMPLATE_DIR) + "/" + name + ".jinja"; }

TEST(TemplateCommand, B25_ShowsWhereQwen3RendersThePastAnewAndWhatIsDoneAboutIt) {
  const Shown shown = run_on({"--chat-template-file", file_of("Qwen-Qwen3-0.6B")});
  EXPECT_EQ(shown.status, 0) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr("What comes next           reasoning sent back  not sent back        no reasoning"));
  EXPECT_THAT(shown.out, HasSubstr("results of a tool call    survives "));
  EXPECT_THAT(shown.out, HasSubstr("a message of the user     parts at "));
  EXPECT_THAT(shown.out, HasSubstr("computed  \"<think>\\nThought number 1."));
  EXPECT_THAT(shown.out,
              HasSubstr("After every answer and every tool call it computes the beginning of the next prompt"));
}

TEST(TemplateCommand, B25_AsJson) {
  const Shown shown = run_on({"--json", "--chat-template-file", file_of("Qwen-Qwen3-0.6B")});
  EXPECT_EQ(shown.status, 0) << shown.err;
  const Json json = Json::parse(shown.out);
  ASSERT_EQ(json["cases"].size(), 6U);
  EXPECT_EQ(json["cases"][0]["next"], "tool_result");
  EXPECT_EQ(json["cases"][0]["survives"], true);
  EXPECT_EQ(json["cases"][3]["reasoning"], "sent_back");
  EXPECT_EQ(json["cases"][3]["survives"], false);
  EXPECT_LT(json["cases"][3]["kept_bytes"], json["cases"][3]["computed_bytes"]);
  EXPECT_EQ(json["idle_prefill_auto"], Json::parse(R"({"after_tool_calls":true,"after_answers":true})"));
}

TEST(TemplateCommand, TheBuiltInModelsOwnTemplate) {
  const Shown shown = run_on({});
  EXPECT_EQ(shown.status, 0) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr("coppice-demo.gguf\n"));
  EXPECT_THAT(shown.out, Not(HasSubstr("it has no template")));
}

TEST(TemplateCommand, SaysWhatIsWrong) {
  const Shown missing = run_on({"-m", "/no/such/model.gguf"});
  EXPECT_EQ(missing.status, 1);
  EXPECT_THAT(missing.err, HasSubstr("/no/such/model.gguf is missing or no GGUF file"));
  const Shown folder = run_on({"--chat-template-file", "/"});
  EXPECT_EQ(folder.status, 1);
  EXPECT_THAT(folder.err, HasSubstr("this is a folder"));
  EXPECT_EQ(run_on({"--chat-template-file", "/no/such/file"}).status, 1);
  const Shown usage = run_on({"--bogus"});
  EXPECT_EQ(usage.status, 2);
  EXPECT_THAT(usage.err, HasSubstr("See: coppice template --help"));
  EXPECT_EQ(run_on({"--help"}).status, 0);
}

}  // namespace
}  // namespace coppice::app

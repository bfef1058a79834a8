// Spec C: whatever a client sends gets a clear answer, and the server goes on serving.
#include <array>
#include <initializer_list>

#include "support.h"

namespace coppice::http_test {
namespace {

class BadInput : public ServerTest {
 protected:
  void SetUp() override { ASSERT_NO_FATAL_FAILURE(serve({"-np", "2", "-c", "1024", "--body-limit", "16MiB"})); }

  static void expect_error(const Response& response, int status, const std::string& what) {
    SCOPED_TRACE(what.substr(0, 200) + " -> " + std::to_string(response.status) + " " + response.body.substr(0, 300));
    EXPECT_EQ(response.status, status);
    const Json body = response.json();
    ASSERT_TRUE(body.is_object() && body.contains("error"));
    EXPECT_FALSE(body["error"]["message"].get<std::string>().empty());
    EXPECT_TRUE(body["error"]["type"].is_string());
    EXPECT_TRUE(body["error"].contains("param"));
    EXPECT_TRUE(body["error"].contains("code"));
  }

  void expect_serving() const {
    EXPECT_EQ(client().get("/health").status, 200);
    const Json answer = client().ask(
        "/v1/chat/completions",
        {{"messages", messages({system("The code of Zorbin is 4821."), user("What is the code of Zorbin?")})},
         {"temperature", 0}});
    EXPECT_EQ(content(answer), "The code of Zorbin is 4821.");
    EXPECT_TRUE(eventually([&] { return metric("coppice_slots_busy") == 0; })) << "a slot is stuck";
  }
};

TEST_F(BadInput, BodiesThatAreNoJsonObject) {
  const std::array<std::string, 12> bodies = {"",
                                              "{",
                                              "null",
                                              "[]",
                                              "\"text\"",
                                              "{\"prompt\": \"a\",}",
                                              "{\"prompt\": NaN}",
                                              "{'a': 1}",
                                              "\xff\xfe",
                                              "42",
                                              "{\"prompt\": \"\xc3\x28\"}",
                                              std::string(100'000, '[')};
  for (const char* path :
       {"/completion", "/v1/completions", "/v1/chat/completions", "/tokenize", "/detokenize", "/apply-template"}) {
    for (const std::string& body : bodies) expect_error(client().request("POST", path, body), 400, path + (" " + body));
  }
  expect_serving();
}

TEST_F(BadInput, FieldsOfWrongTypesAndRanges) {
  const std::array<std::pair<const char*, const char*>, 44> fields = {{
      {"prompt", "null"},
      {"prompt", "{}"},
      {"prompt", "true"},
      {"prompt", "\"\""},
      {"prompt", "[]"},
      {"prompt", "[-1]"},
      {"prompt", "[99999999]"},
      {"prompt", "[1.5]"},
      {"prompt", "[1, null]"},
      {"prompt", "[[]]"},
      {"prompt", "7"},
      {"n_predict", "-2"},
      {"n_predict", "\"many\""},
      {"n_predict", "1e300"},
      {"n_predict", "[]"},
      {"max_tokens", "-5"},
      {"n", "0"},
      {"n", "-1"},
      {"n", "1000"},
      {"n", "1.5"},
      {"stream", "\"yes\""},
      {"stop", "5"},
      {"stop", "[5]"},
      {"id_slot", "2"},
      {"id_slot", "-2"},
      {"id_slot", "\"0\""},
      {"id_slot", "99999999999999999999"},
      {"shared_pool_slot", "7"},
      {"shared_pool_slot", "-9"},
      {"shared_prefix_n_tokens", "-1"},
      {"shared_prefix_n_tokens", "1e30"},
      {"session_id", "5"},
      {"session_id", "{}"},
      {"cache_prompt", "1"},
      {"cache_salt", "[]"},
      {"n_probs", "-1"},
      {"n_probs", "100000"},
      {"temperature", "\"hot\""},
      {"temperature", "{}"},
      {"top_k", "1.5"},
      {"logit_bias", "7"},
      {"logit_bias", "[[5]]"},
      {"grammar", "\"root ::= (\""},
      {"json_schema", "{\"type\": 7}"},
  }};
  for (const auto& [name, value] : fields) {
    Json body = {{"prompt", "Hello"}, {"n_predict", 2}};
    body[name] = Json::parse(value);
    expect_error(client().post("/completion", body), 400, std::string(name) + ": " + value);
  }
  expect_serving();
}

TEST_F(BadInput, ChatFieldsOfWrongTypes) {
  const std::array<std::pair<const char*, const char*>, 14> fields = {{
      {"messages", "null"},
      {"messages", "[]"},
      {"messages", "\"hi\""},
      {"messages", "[5]"},
      {"messages", "[{}]"},
      {"messages", "[{\"role\": 5, \"content\": \"a\"}]"},
      {"messages", "[{\"role\": \"user\", \"content\": 5}]"},
      {"messages", "[{\"role\": \"user\", \"content\": [{\"type\": \"image_url\"}]}]"},
      {"tools", "{}"},
      {"tools", "[5]"},
      {"tool_choice", "5"},
      {"response_format", "5"},
      {"response_format", "{\"type\": \"poem\"}"},
      {"stream_options", "5"},
  }};
  for (const auto& [name, value] : fields) {
    Json body = {{"messages", messages({user("Hello")})}, {"max_tokens", 2}};
    body[name] = Json::parse(value);
    expect_error(client().post("/v1/chat/completions", body), 400, std::string(name) + ": " + value);
  }
  expect_serving();
}

TEST_F(BadInput, AbsurdSamplerValuesAreRefused) {
  for (const auto& [name, value] : std::initializer_list<std::pair<const char*, Json>>{{"temperature", 1e30},
                                                                                       {"temperature", -5},
                                                                                       {"top_k", 1e18},
                                                                                       {"top_p", 2},
                                                                                       {"min_p", -1},
                                                                                       {"mirostat", 7},
                                                                                       {"repeat_penalty", 1e38},
                                                                                       {"repeat_last_n", -2},
                                                                                       {"seed", 1e19},
                                                                                       {"min_keep", -1},
                                                                                       {"dry_base", -1},
                                                                                       {"presence_penalty", 1e30},
                                                                                       {"xtc_probability", 7},
                                                                                       {"n_probs", 1'000'000},
                                                                                       {"n", 1000},
                                                                                       {"n_predict", -7}}) {
    Json body = {{"prompt", "Hello"}, {"n_predict", 3}};
    body[name] = value;
    expect_error(client().post("/completion", body), 400, std::string(name) + ": " + value.dump());
  }
  expect_serving();
}

// Whatever number it is: refused, or an answer of whole JSON, and the server lives.
TEST_F(BadInput, ExtremeSamplerValues) {
  for (const char* name : {"temperature",
                           "top_p",
                           "min_p",
                           "top_k",
                           "typical_p",
                           "top_n_sigma",
                           "xtc_probability",
                           "xtc_threshold",
                           "repeat_penalty",
                           "repeat_last_n",
                           "presence_penalty",
                           "frequency_penalty",
                           "dry_multiplier",
                           "dry_base",
                           "dry_allowed_length",
                           "dry_penalty_last_n",
                           "mirostat",
                           "mirostat_tau",
                           "mirostat_eta",
                           "dynatemp_range",
                           "dynatemp_exponent",
                           "min_keep",
                           "seed",
                           "adaptive_target",
                           "adaptive_decay"}) {
    for (const char* value : {"1e308", "-1e308", "-1", "0", "1099511627776", "1e-300", "18446744073709551615"}) {
      Json body = {{"prompt", "Hello"}, {"n_predict", 3}};
      body[name] = Json::parse(value);
      const Response response = client().post("/completion", body);
      if (response.status != 200) {
        expect_error(response, 400, std::string(name) + ": " + value);
      } else {
        EXPECT_TRUE(response.json()["content"].is_string()) << name << ": " << value;
      }
    }
    for (const char* value : {"\"NaN\"", "[1]", "{}", "true"}) {
      Json body = {{"prompt", "Hello"}, {"n_predict", 3}};
      body[name] = Json::parse(value);
      expect_error(client().post("/completion", body), 400, std::string(name) + ": " + value);
    }
  }
  expect_serving();
}

TEST_F(BadInput, PromptsOverTheContext) {
  const Json long_chat = messages({user(filler(1, 100))});
  const TokenPos n = length(tokens_of(long_chat));
  ASSERT_GT(n, 1024);
  const Response native = client().post("/completion", {{"prompt", random_tokens(1, 1500)}});
  const Response chat = client().post("/v1/chat/completions", {{"messages", long_chat}, {"stream", true}});
  for (const auto& [response, tokens] : {std::pair{native, 1500}, std::pair{chat, n}}) {
    expect_error(response, 400, "too long");
    const Json error = response.json()["error"];
    const std::string message = error["message"];
    EXPECT_NE(message.find("prompt is too long: " + std::to_string(tokens) + " tokens > 1024 maximum"),
              std::string::npos)
        << message;
    EXPECT_NE(message.find("maximum context length is 1024 tokens"), std::string::npos) << message;
    EXPECT_EQ(error["code"], "context_length_exceeded");
  }
  // The longest that fits: one cell is left for the first token of the answer.
  EXPECT_EQ(client().post("/completion", greedy(random_tokens(1, 1023), 5)).status, 200);
  expect_error(client().post("/completion", greedy(random_tokens(1, 1024), 5)), 400, "as long as the context");
  expect_serving();
}

TEST_F(BadInput, HugeBodies) {
  std::string ids = "{\"prompt\": [100";
  while (ids.size() < 10U << 20U) ids += ",100";
  expect_error(client().request("POST", "/completion", ids + "]}"), 400, "10 MiB of token ids");
  expect_error(client().post("/completion", {{"prompt", std::string(1U << 20U, 'a')}}), 400, "1 MiB of text");
  const std::string text(10U << 20U, 'a');
  Json unknown_field = {{"prompt", "Hello"}, {"n_predict", 2}};
  unknown_field["padding"] = text;
  EXPECT_EQ(client().post("/completion", unknown_field).status, 200) << "an unknown field of 10 MiB";
  expect_error(client().request("POST", "/completion", std::string(17U << 20U, ' ')), 413, "over the limit");
  expect_serving();
}

TEST_F(BadInput, RoutesAndMethods) {
  expect_error(client().get("/nowhere"), 404, "unknown route");
  expect_error(client().request("POST", "/v1/nowhere", "{}"), 404, "unknown route");
  for (const char* path : {"/completion", "/v1/chat/completions", "/tokenize"}) {
    const Response response = client().get(path);
    expect_error(response, 405, path);
    EXPECT_EQ(response.headers.at("allow"), "POST, OPTIONS");
  }
  for (const char* path : {"/health", "/props", "/slots", "/metrics", "/v1/models"}) {
    expect_error(client().request("DELETE", path), 405, path);
  }
  expect_serving();
}

TEST_F(BadInput, TextThatIsNotValidUtf8ComesOutReplaced) {
  // Single bytes of longer characters, which the model may well be made to say.
  const Json answer = client().ask(
      "/completion",
      {{"prompt", "a"}, {"n_predict", 40}, {"temperature", 3}, {"top_k", 0}, {"min_p", 0}, {"top_p", 1}, {"seed", 7}});
  EXPECT_TRUE(answer["content"].is_string());
  const Json tokens = client().ask("/tokenize", {{"content", "\xc3\xa9\xf0\x9f\x8c\xb1"}});
  const Json cut = client().ask("/detokenize", {{"tokens", Json::array({tokens["tokens"][0]})}});
  EXPECT_TRUE(cut["content"].is_string());
  expect_serving();
}

}  // namespace
}  // namespace coppice::http_test

// Everything wrong that a client can send gets a 4xx with a JSON error, before anything reaches the engine.
#include <gtest/gtest.h>

#include "api/fakes.h"

namespace coppice::api {
namespace {

struct BadRequest {
  std::string path, body, param, message_part;
};

void expect_refused(const BadRequest& c) {
  FakeServer server;
  auto answer = server.post(c.path, c.body);
  ASSERT_EQ(answer->n_sent, 1) << c.body;
  EXPECT_EQ(answer->response.status, 400) << c.body;
  EXPECT_EQ(answer->stream_type, "") << c.body;
  const Json error = answer->json()["error"];
  EXPECT_EQ(error["type"], "invalid_request_error") << c.body;
  EXPECT_EQ(error["param"], c.param.empty() ? Json(nullptr) : Json(c.param)) << c.body << error;
  EXPECT_NE(error["message"].get<std::string>().find(c.message_part), std::string::npos) << c.body << error;
  EXPECT_TRUE(server.engine.requests.empty()) << c.body;
}

std::string prompt_with(const std::string& fields) { return R"({"prompt":"hi",)" + fields + "}"; }

TEST(BadInput, BodiesThatAreNoJsonObject) {
  const std::string bodies[] = {"", "{", "[]", "3", "\"x\"", "{\"prompt\":\"\xff\"}", "{\"prompt\":1e999}"};
  for (const char* path :
       {"/completion", "/v1/completions", "/v1/chat/completions", "/tokenize", "/detokenize", "/apply-template"}) {
    for (const std::string& body : bodies) expect_refused({path, body, "", ""});
  }
}

TEST(BadInput, FieldsOfEveryCompletionRoute) {
  const std::pair<std::string, std::string> fields[] = {
      {"session_id", "5"},
      {"session_id", "\"" + std::string(257, 's') + "\""},
      {"parent_session_id", "[]"},
      {"parent_session_id", "\"" + std::string(257, 's') + "\""},
      {"id_slot", "\"1\""},
      {"id_slot", "4"},
      {"id_slot", "-2"},
      {"id_slot", "1.5"},
      {"id_slot", "99999999999"},
      {"cache_prompt", "1"},
      {"shared_pool_slot", "4"},
      {"shared_pool_slot", "true"},
      {"shared_prefix_n_tokens", "-1"},
      {"shared_prefix_n_tokens", "1e300"},
      {"shared_prefix_n_tokens", "1180591620717411303424"},  // 2^70
      {"pool", "\"" + std::string(129, 'p') + "\""},
      {"pool", "{}"},
      {"cache_salt", "7"},
      {"cache_salt", "\"" + std::string(1025, 's') + "\""},
      {"n_predict", "-2"},
      {"n_predict", "\"5\""},
      {"n_predict", "2147483648"},
      {"max_tokens", "-5"},
      {"max_tokens", "[1]"},
      {"max_completion_tokens", "0.5"},
      {"stop", "5"},
      {"stop", "{\"a\":1}"},
      {"stop", "[\"a\",5]"},
      {"stop", "\"" + std::string(1025, 's') + "\""},
      {"n", "0"},
      {"n", "-1"},
      {"n", "17"},
      {"n", "\"2\""},
      {"n_cmpl", "0"},
      {"stream", "\"yes\""},
      {"stream_options", "[]"},
      {"return_tokens", "1"},
      {"return_progress", "\"\""},
      {"timings_per_token", "2"},
      {"n_probs", "-1"},
      {"n_probs", "101"},
      {"top_logprobs", "-1"},
      {"post_sampling_probs", "0"},
      {"t_max_predict_ms", "\"1\""},
      {"t_max_predict_ms", "9223372036854775807"},
      {"seed", "-2"},
      {"seed", "4294967296"},
      {"seed", "0.5"},
      {"seed", "[]"},
      {"sse_ping_interval", "\"1\""},
      {"model", "5"},
      {"temperature", "\"hot\""},  // read by the sampler factory
  };
  for (const char* path : {"/completion", "/v1/completions", "/v1/chat/completions"}) {
    for (const auto& [name, value] : fields) {
      const std::string body =
          R"({"prompt":"hi","messages":[{"role":"user","content":"hi"}],")" + name + "\":" + value + "}";
      expect_refused({path, body, name, "'" + name + "'"});
    }
  }
}

TEST(BadInput, FieldsOfOneRoute) {
  const BadRequest cases[] = {
      {"/completion", prompt_with(R"("logprobs":"x")"), "logprobs", "whole number"},
      {"/completion", prompt_with(R"("response_fields":[1])"), "response_fields", "array of strings"},
      {"/v1/completions", prompt_with(R"("echo":true)"), "echo", "not supported"},
      {"/v1/completions", prompt_with(R"("best_of":3)"), "best_of", "not supported"},
      {"/v1/completions", prompt_with(R"("suffix":"x")"), "suffix", "not supported"},
      {"/v1/completions", prompt_with(R"("stream_options":{"include_usage":1})"), "stream_options.include_usage",
       "true or false"},
      {"/v1/chat/completions", R"({"messages":[],"logprobs":3})", "logprobs", "true or false"},
      {"/v1/chat/completions", R"({"messages":[],"top_logprobs":3})", "top_logprobs", "'logprobs': true"},
      {"/v1/chat/completions", R"({})", "messages", "messages"},
      {"/apply-template", R"({"messages":7})", "messages", "messages"},
      {"/tokenize", R"({})", "content", "missing"},
      {"/tokenize", R"({"content":{}})", "content", "text or a list"},
      {"/tokenize", R"({"content":[["a"]]})", "content", "texts and token ids only"},
      {"/tokenize", R"({"content":"a","with_pieces":1})", "with_pieces", "true or false"},
      {"/detokenize", R"({})", "tokens", "list of token ids"},
      {"/detokenize", R"({"tokens":"a"})", "tokens", "list of token ids"},
      {"/detokenize", R"({"tokens":["a"]})", "tokens", "list of token ids"},
      {"/detokenize", R"({"tokens":[259]})", "tokens", "from 0 to 258"},
      {"/detokenize", R"({"tokens":[-1]})", "tokens", "from 0 to 258"},
  };
  for (const BadRequest& c : cases) expect_refused(c);
}

TEST(BadInput, Prompts) {
  const std::pair<const char*, const char*> prompts[] = {
      {"null", "missing"},
      {"7", "text or a list"},
      {"true", "text or a list"},
      {"[]", "empty"},
      {"[259]", "from 0 to 258"},
      {"[-1]", "from 0 to 258"},
      {"[1.5]", "from 0 to 258"},
      {"[1e30]", "from 0 to 258"},
      {"[1,[2]]", "text or a list"},
      {"[[1,{}]]", "texts and token ids only"},
      {"[[]]", "empty"},
      {"[\"a\",[]]", "empty"},
      {"{}", "prompt_string"},
      {"{\"prompt_string\":5}", "prompt_string"},
      {"{\"prompt_string\":\"x\",\"multimodal_data\":[\"aGk=\"]}", "text only"},
      {"[\"1\",\"2\",\"3\",\"4\",\"5\",\"6\",\"7\",\"8\",\"9\",\"a\",\"b\",\"c\",\"d\",\"e\",\"f\",\"g\",\"h\"]",
       "17 prompts"},
  };
  for (const char* path : {"/completion", "/v1/completions"}) {
    for (const auto& [prompt, message] : prompts) {
      expect_refused({path, std::string("{\"prompt\":") + prompt + "}", "prompt", message});
    }
    expect_refused({path, "{}", "prompt", "missing"});
  }
}

TEST(BadInput, AnEmptyTextIsRefusedUnlessTheModelPutsATokenBeforeIt) {
  FakeServer server;
  EXPECT_EQ(server.post("/completion", R"({"prompt":""})")->n_sent, 0);
  ASSERT_EQ(server.engine.requests.size(), 1U);
  EXPECT_EQ(*server.engine.requests[0].prompt, Tokens{FakeTokenizer::kBos});
  server.tokenizer.add_bos = false;
  auto refused = server.post("/completion", R"({"prompt":""})");
  EXPECT_EQ(refused->response.status, 400);
  EXPECT_EQ(refused->json()["error"]["message"], "the prompt is empty");
}

TEST(BadInput, TooManyStopWords) {
  std::string stop = "[\"x\"";
  for (int i = 0; i < 64; ++i) stop += ",\"x\"";
  expect_refused({"/completion", prompt_with("\"stop\":" + stop + "]"), "stop", "more than 64"});
}

TEST(BadInput, APromptOverTheContextSaysItInTheWordsThatClientsKnow) {
  FakeServer server;
  const std::string text(127, 'x');  // and BOS: 128 tokens, the whole context
  for (const std::string& body : {R"({"prompt":")" + text + "\"}", R"({"prompt":["a",")" + text + "\"]}"}) {
    auto answer = server.post("/v1/completions", body);
    EXPECT_EQ(answer->response.status, 400);
    const Json error = answer->json()["error"];
    EXPECT_EQ(error["code"], "context_length_exceeded");
    const auto message = error["message"].get<std::string>();
    EXPECT_NE(message.find("prompt is too long: 128 tokens > 128 maximum"), std::string::npos) << message;
    EXPECT_NE(message.find("maximum context length is 128 tokens"), std::string::npos) << message;
  }
  const std::string chat = R"({"stream":true,"messages":[{"role":"user","content":")" + text + "\"}]}";
  EXPECT_EQ(server.post("/v1/chat/completions", chat)->json()["error"]["code"], "context_length_exceeded");
  EXPECT_TRUE(server.engine.requests.empty());
  // One token less leaves room for an answer.
  server.post("/v1/completions", R"({"prompt":")" + text.substr(1) + "\"}");
  EXPECT_EQ(server.engine.requests.size(), 1U);
}

// Tokenizing megabytes takes a thread for seconds, only to find that they do not fit.
TEST(BadInput, TextThatCanNeverFitIsNotTokenized) {
  FakeServer server;
  const std::string text(8 * 129, 'x');  // no token stands for more than 8 bytes: at least 129 tokens
  for (const std::string& prompt :
       {"\"" + text + "\"", "[1,\"" + text + "\"]", "{\"prompt_string\":\"" + text + "\"}"}) {
    const auto answer = server.post("/completion", "{\"prompt\":" + prompt + "}");
    EXPECT_EQ(answer->json()["error"]["code"], "context_length_exceeded") << prompt.substr(0, 20);
  }
  const std::string chat = R"({"messages":[{"role":"user","content":")" + text + "\"}]}";
  EXPECT_EQ(server.post("/v1/chat/completions", chat)->json()["error"]["code"], "context_length_exceeded");
  EXPECT_EQ(server.tokenizer.longest_tokenized, 0U);
}

TEST(BadInput, TenMegabyteBodiesAreAnswered) {
  const std::string text(std::size_t{10} << 20U, 'x');
  FakeServer server;
  EXPECT_EQ(server.post("/completion", R"({"prompt":")" + text + "\"}")->json()["error"]["code"],
            "context_length_exceeded");
  expect_refused({"/completion", text, "", "not valid JSON"});
  expect_refused({"/completion", std::string(text.size(), '{'), "", "nested deeper"});
}

TEST(BadInput, UnknownFieldsNullsAndQueryStringsAreNoErrors) {
  FakeServer server;
  const char* body = R"({"prompt":"hi","store":true,"user":{"any":1},"n_predict":null,"stop":null,"session_id":null,
                        "seed":null,"stream":null,"stream_options":null,"pool":null,"logprobs":null,"id_slot":-1,
                        "shared_pool_slot":-1,"shared_prefix_n_tokens":0,"max_tokens":8.0})";
  server.request({.method = "POST", .path = "/v1/completions", .query = "beta=true", .body = body});
  ASSERT_EQ(server.engine.requests.size(), 1U);
  const sched::Request& request = server.engine.requests[0];
  EXPECT_EQ(request.n_predict, 8);
  EXPECT_FALSE(request.placement.id_slot);
  EXPECT_FALSE(request.placement.shared_pool_slot);
}

}  // namespace
}  // namespace coppice::api

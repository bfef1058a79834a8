// Chat and sampling features end to end, on the built-in model.
#include <cmath>
#include <set>

#include "support.h"

namespace coppice::http_test {
namespace {

constexpr const char* kChat = "/v1/chat/completions";

Json city_tool(const char* name) {
  return {{"type", "function"},
          {"function",
           {{"name", name},
            {"parameters",
             {{"type", "object"}, {"properties", {{"city", {{"type", "string"}}}}}, {"required", {"city"}}}}}}};
}

class Chat : public ServerTest {
 protected:
  void SetUp() override { ASSERT_NO_FATAL_FAILURE(serve({"-np", "4"})); }

  static Json who() { return {{"messages", messages({user("Who are you?")})}, {"temperature", 0}}; }
  static Json with_tools(const std::string& question) {
    return {{"messages", messages({system("You are a careful agent. Use the facts and the tools."), user(question)})},
            {"tools", Json::array({city_tool("get_weather"), city_tool("get_time")})},
            {"temperature", 0}};
  }
  static constexpr const char* kWho = "I am the Coppice demo model, a tiny model for tests.";

  Json choice(const Json& body) const { return client().ask(kChat, body).at("choices").at(0); }
};

TEST_F(Chat, ToolCallsWholeAndStreamedAreTheSame) {
  Json body = with_tools("What is the weather in Tavley and Oslo?");
  const Json whole = choice(body);
  EXPECT_EQ(whole["finish_reason"], "tool_calls");
  const Json& calls = whole["message"]["tool_calls"];
  ASSERT_EQ(calls.size(), 2U) << whole.dump();
  EXPECT_NE(calls[0]["id"], calls[1]["id"]);

  std::vector<Json> streamed;
  const Events events = collect(client().stream(kChat, body));
  EXPECT_TRUE(events.done);
  for (const Json& event : events.list) {
    for (const Json& call : event["choices"][0]["delta"].value("tool_calls", Json::array())) {
      const std::size_t index = call["index"];
      if (call.contains("id")) {
        EXPECT_EQ(index, streamed.size()) << "a call begins once, in order";
        EXPECT_EQ(call["function"]["arguments"], "");
        streamed.push_back(call);
      } else {
        ASSERT_LT(index, streamed.size());
        auto& arguments = streamed[index]["function"]["arguments"].get_ref<std::string&>();
        arguments += call["function"]["arguments"].get<std::string>();
      }
    }
  }
  EXPECT_EQ(events.last()["choices"][0]["finish_reason"], "tool_calls");
  ASSERT_EQ(streamed.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(calls[i]["function"]["name"], "get_weather");
    EXPECT_EQ(streamed[i]["function"], calls[i]["function"]);
    EXPECT_EQ(Json::parse(calls[i]["function"]["arguments"].get<std::string>())["city"], i == 0 ? "Tavley" : "Oslo");
  }
}

TEST_F(Chat, ToolChoice) {
  Json body = with_tools("What is the weather in Tavley?");
  body["tool_choice"] = "none";
  EXPECT_FALSE(choice(body)["message"].contains("tool_calls"));
  body["tool_choice"] = {{"type", "function"}, {"function", {{"name", "get_time"}}}};
  const Json named = choice(body)["message"];
  ASSERT_TRUE(named.contains("tool_calls")) << named.dump();
  EXPECT_EQ(named["tool_calls"][0]["function"]["name"], "get_time") << "though get_weather is what was asked for";

  body = with_tools("Hello.");
  EXPECT_EQ(choice(body)["message"]["content"], "Hello! How can I help?") << "auto: the model is free not to call";
  body["tool_choice"] = "required";
  body["max_tokens"] = 60;
  EXPECT_NE(choice(body)["finish_reason"], "stop") << "text may come first, but there is no end without a call";
}

TEST_F(Chat, StructuredOutput) {
  const Json schema = {{"type", "object"},
                       {"properties", {{"color", {{"enum", {"red", "blue"}}}}, {"size", {{"enum", {1, 2}}}}}},
                       {"required", {"color", "size"}},
                       {"additionalProperties", false}};
  const auto check = [](const std::string& text) {
    const Json value = Json::parse(text, nullptr, false);
    ASSERT_TRUE(value.is_object()) << text;
    EXPECT_EQ(value.size(), 2U);
    EXPECT_TRUE(value["color"] == "red" || value["color"] == "blue") << text;
    EXPECT_TRUE(value["size"] == 1 || value["size"] == 2) << text;
  };
  Json body = who();
  body["max_tokens"] = 300;  // a grammar lets the model put in many spaces
  body["response_format"] = {{"type", "json_schema"}, {"json_schema", {{"name", "thing"}, {"schema", schema}}}};
  check(choice(body)["message"]["content"]);
  check(collect(client().stream(kChat, body)).text());
  check(client().ask("/completion", {{"prompt", "a"}, {"json_schema", schema}, {"n_predict", 300}})["content"]);

  body = who();
  body["grammar"] = R"(root ::= "yes" | "no")";
  const std::string word = choice(body)["message"]["content"];
  EXPECT_TRUE(word == "yes" || word == "no") << word;
}

TEST_F(Chat, StopWordsAndLimits) {
  Json body = who();
  body["stop"] = {"demo", "tiny"};
  Json answer = choice(body);
  EXPECT_EQ(answer["message"]["content"], "I am the Coppice ");
  EXPECT_EQ(answer["finish_reason"], "stop");
  EXPECT_EQ(collect(client().stream(kChat, body)).text(), "I am the Coppice ");
  body = who();
  for (const char* limit : {"max_tokens", "max_completion_tokens"}) {
    Json limited = body;
    limited[limit] = 3;
    answer = choice(limited);
    EXPECT_EQ(answer["message"]["content"], "I am the");
    EXPECT_EQ(answer["finish_reason"], "length");
  }
  EXPECT_EQ(choice(body)["finish_reason"], "stop");
  EXPECT_EQ(collect(client().stream(kChat, body)).text(), kWho);
}

TEST_F(Chat, StreamsBeginWithTheRoleAndGiveUsageOnlyIfAsked) {
  const Events plain = collect(client().stream(kChat, who()));
  EXPECT_EQ(plain.list.front()["choices"][0]["delta"]["role"], "assistant");
  for (const Json& event : plain.list) {
    EXPECT_FALSE(event.contains("usage"));
    EXPECT_EQ(event["object"], "chat.completion.chunk");
    EXPECT_EQ(event["id"], plain.list.front()["id"]);
  }
  Json body = who();
  body["stream_options"] = {{"include_usage", true}};
  const Events with_usage = collect(client().stream(kChat, body));
  EXPECT_EQ(with_usage.list.size(), plain.list.size() + 1);
  EXPECT_EQ(with_usage.last()["choices"].size(), 0U);
  EXPECT_EQ(with_usage.last()["usage"]["completion_tokens"], 14);
}

TEST_F(Chat, SeveralAnswersComputeThePromptOnce) {
  Json body = who();
  body["n"] = 3;
  const Json answer = client().ask(kChat, body);
  ASSERT_EQ(answer["choices"].size(), 3U);
  const int n_prompt = answer["usage"]["prompt_tokens"];
  for (int i = 0; i < 3; ++i) {
    const Json& one = answer["choices"][static_cast<std::size_t>(i)];
    EXPECT_EQ(one["index"], i);
    EXPECT_EQ(one["message"]["content"], kWho);
    EXPECT_EQ(one["coppice"]["computed"], i == 0 ? n_prompt : 1);
  }
  EXPECT_EQ(metric("coppice_prompt_tokens_computed_total"), n_prompt + 2);
  EXPECT_EQ(answer["usage"]["completion_tokens"], 3 * 14);

  std::set<int> ended;
  for (const Json& event : collect(client().stream(kChat, body)).list) {
    if (!event["choices"][0]["finish_reason"].is_null()) ended.insert(event["choices"][0]["index"].get<int>());
  }
  EXPECT_EQ(ended, (std::set{0, 1, 2}));
}

TEST_F(Chat, ASeedRepeatsAnAnswer) {
  Json body = {{"prompt", random_tokens(1, 30)},
               {"n_predict", 24},
               {"temperature", 1.5},
               {"top_k", 0},
               {"top_p", 1},
               {"min_p", 0},
               {"ignore_eos", true},
               {"return_tokens", true},
               {"cache_prompt", false},
               {"id_slot", 0}};
  const auto tokens = [&](std::int64_t seed) {
    body["seed"] = seed;
    return client().ask("/completion", body)["tokens"];
  };
  const Json one = tokens(42);
  EXPECT_EQ(one.size(), 24U);
  EXPECT_EQ(tokens(42), one);
  EXPECT_NE(tokens(43), one);
  EXPECT_NE(tokens(-1), tokens(-1)) << "-1 is another seed each time";
}

TEST_F(Chat, LogprobsAndBias) {
  Json body = who();
  body["max_tokens"] = 3;
  body["logprobs"] = true;
  body["top_logprobs"] = 2;
  const Json whole = choice(body)["logprobs"]["content"];
  ASSERT_EQ(whole.size(), 3U);
  for (const Json& token : whole) {
    EXPECT_EQ(token["top_logprobs"].size(), 2U);
    EXPECT_EQ(token["top_logprobs"][0]["token"], token["token"]) << "greedy";
    EXPECT_LE(token["logprob"].get<double>(), 0);
    EXPECT_GE(token["logprob"].get<double>(), token["top_logprobs"][1]["logprob"].get<double>());
  }
  EXPECT_EQ(whole[0]["token"], "I");
  EXPECT_EQ(whole[1]["bytes"], Json({32, 97, 109}));
  std::size_t streamed = 0;
  for (const Json& event : collect(client().stream(kChat, body)).list) {
    const Json& one = event["choices"][0];
    if (one.contains("logprobs") && one["logprobs"].is_object()) streamed += one["logprobs"]["content"].size();
  }
  EXPECT_EQ(streamed, 3U);

  const Token i = client().ask("/tokenize", {{"content", "I"}})["tokens"].back().get<Token>();
  body = who();
  body["logit_bias"] = {{std::to_string(i), -100}};
  EXPECT_NE(choice(body)["message"]["content"].get<std::string>().front(), 'I');
}

TEST_F(Chat, TextPromptsTokenPromptsAndMixturesAreTheSamePrompt) {
  const Tokens tokens = tokenize("The code of Zorbin is 4821.");
  Json mixed = Json::array({"The code of"});
  const Tokens head = tokenize("The code of");
  ASSERT_EQ(common_prefix(head, tokens), length(head));
  for (std::size_t i = head.size(); i < tokens.size(); ++i) mixed.push_back(tokens[i]);
  Json answers = Json::array();
  for (const Json& prompt : {Json("The code of Zorbin is 4821."), Json(tokens), mixed}) {
    const Json answer = client().ask(
        "/completion", {{"prompt", prompt}, {"n_predict", 5}, {"temperature", 0}, {"cache_prompt", false}});
    EXPECT_EQ(answer["tokens_evaluated"], tokens.size());
    answers.push_back(answer["content"]);
  }
  EXPECT_EQ(answers[0], answers[1]);
  EXPECT_EQ(answers[0], answers[2]);
}

TEST_F(Chat, TextRoutes) {
  for (const std::string text :
       {"The code of Zorbin is 4821.", "<|im_start|>user\nHi<|im_end|>", "\xc3\xa9 \xf0\x9f\x8c\xb1\n\t "}) {
    const Json tokens = client().ask("/tokenize", {{"content", text}})["tokens"];
    EXPECT_FALSE(tokens.empty());
    EXPECT_EQ(client().ask("/detokenize", {{"tokens", tokens}})["content"], text);
    std::string pieces;
    const Json with_pieces = client().ask("/tokenize", {{"content", text}, {"with_pieces", true}});
    for (const Json& token : with_pieces["tokens"]) {
      if (token["piece"].is_string()) {
        pieces += token["piece"].get<std::string>();
      } else {
        for (const Json& byte : token["piece"]) pieces += static_cast<char>(byte.get<int>());
      }
    }
    EXPECT_EQ(pieces, text);
  }
  EXPECT_EQ(client().ask("/apply-template", {{"messages", messages({system("S"), user("U")})}})["prompt"],
            "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nU<|im_end|>\n<|im_start|>assistant\n");
}

TEST_F(Chat, InformationRoutes) {
  EXPECT_EQ(client().get("/health").json(), Json({{"status", "ok"}}));
  const Json model = client().get("/v1/models").json()["data"][0];
  EXPECT_EQ(model["id"], "coppice-demo");
  EXPECT_EQ(model["meta"]["n_ctx"], 8192);
  const Json props = client().get("/props").json();
  EXPECT_EQ(props["total_slots"], 4);
  EXPECT_EQ(props["default_generation_settings"]["n_ctx"], 8192);
  EXPECT_NE(props["chat_template"].get<std::string>().find("im_start"), std::string::npos);
  EXPECT_EQ(client().get("/slots").json().size(), 4U);
  const Response metrics = client().get("/metrics");
  EXPECT_TRUE(metrics.headers.at("content-type").starts_with("text/plain; version=0.0.4"));
  EXPECT_EQ(client().request("HEAD", "/health").status, 200);
  EXPECT_EQ(metric("coppice_kv_cells_total"), 8192);
}

}  // namespace
}  // namespace coppice::http_test

// Whatever a client asks for, sampling goes on: absurd values in every combination, and grammars from a heap of pieces.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "engine/demo_model_for_test.h"

namespace coppice::engine {
namespace {

using testing::demo;

// Makes a sampler for `body` and, if it is not refused, samples a few tokens with it.
void try_to_sample(const Json& body, const ProbsOptions& probs = {}) {
  const SeqId seq{0};
  demo().runner->clear(seq);
  const auto made = demo().samplers->make(body, {});
  if (!made) {
    RC_ASSERT(made.error().kind == ErrorKind::invalid_request);
    RC_ASSERT(!made.error().message.empty());
    return;
  }
  const Tokens prompt = demo().tokenizer->tokenize(testing::ask("The code of Zorbin is 4821."), false, true);
  (*made)->accept_prompt(prompt);
  std::int32_t index = demo().eval(seq, prompt);
  for (TokenPos i = 0; i < 6; ++i) {
    const Sampled s = demo().runner->sample(**made, index, probs);
    RC_ASSERT(s.token >= 0 && s.token < demo().tokenizer->n_vocab());
    index = demo().eval(seq, {s.token}, static_cast<TokenPos>(prompt.size()) + i);
  }
  demo().runner->clear(seq);
}

std::vector<std::string> some_of(const std::vector<std::string>& all, int n_max) {
  const auto n = static_cast<std::size_t>(*rc::gen::inRange(0, n_max + 1));
  return *rc::gen::container<std::vector<std::string>>(n, rc::gen::elementOf(all));
}

Json absurd_value() {
  static const std::vector<Json> kValues = {0,
                                            1,
                                            -1,
                                            2,
                                            0.5,
                                            0.01,
                                            0.99,
                                            1e-45,
                                            1e-30,
                                            1e30,
                                            -1e30,
                                            1e300,
                                            100,
                                            -100,
                                            2147483647,
                                            -2147483648LL,
                                            4294967296LL,
                                            9223372036854775807LL,
                                            18446744073709551615ULL,
                                            1'000'000'000,
                                            3,
                                            40,
                                            0.999999,
                                            1e-6};
  return *rc::gen::elementOf(kValues);
}

RC_GTEST_PROP(LlamaSamplerFuzz, SurvivesAbsurdValuesTogether, ()) {
  static const std::vector<std::string> kNames = {
      "seed",           "temperature",   "dynatemp_range",     "dynatemp_exponent",  "top_k",
      "top_p",          "min_p",         "top_n_sigma",        "xtc_probability",    "xtc_threshold",
      "typical_p",      "repeat_last_n", "repeat_penalty",     "presence_penalty",   "frequency_penalty",
      "dry_multiplier", "dry_base",      "dry_allowed_length", "dry_penalty_last_n", "mirostat",
      "mirostat_tau",   "mirostat_eta",  "adaptive_target",    "adaptive_decay",     "min_keep"};
  Json body = Json::object();
  for (const std::string& name : some_of(kNames, 12)) {
    const Json value = absurd_value();
    body[name] = value;
    if (!demo().samplers->make({{name, value}}, {})) body.erase(name);  // refused alone; see how the others do
  }
  if (*rc::gen::arbitrary<bool>()) {
    body["samplers"] = *rc::gen::container<std::string>(rc::gen::elementOf(std::string("edskypmxtai")));
  }
  if (*rc::gen::inRange(0, 4) == 0) body["grammar"] = "root ::= [a-zA-Z ,.]*";
  if (*rc::gen::inRange(0, 4) == 0) body["ignore_eos"] = true;
  if (*rc::gen::inRange(0, 4) == 0) body["logit_bias"] = {{std::to_string(*rc::gen::inRange(0, 1300)), absurd_value()}};
  try_to_sample(body, {.n_probs = *rc::gen::inRange(0, 4), .post_sampling = *rc::gen::arbitrary<bool>()});
}

RC_GTEST_PROP(LlamaSamplerFuzz, SurvivesAnyGrammar, ()) {
  static const std::vector<std::string> kPieces = {
      "root", "a", "b",     "c",      " ::= ", "\n",  "\"x\"",    "\"\"", "\"OK\"", "[a-z]", "[^\"]",
      "[]",   "(", ")",     " | ",    "*",     "+",   "?",        "{2}",  "{1,3}",  "{3,1}", "{0}",
      "{0,}", ".", "<[5]>", "!<[5]>", " ",     "# c", "\xC3\xA9", "\\",   "[",      "\""};
  std::string grammar = "root ::= a ";
  for (const std::string& piece : some_of(kPieces, 6)) grammar += piece;
  grammar += "\na ::= b c | ";
  for (const std::string& piece : some_of(kPieces, 6)) grammar += piece;
  grammar += "\nb ::= c\nc ::= \"\" | \"y\"\n";
  try_to_sample({{"grammar", grammar}, {"seed", 1}});
}

RC_GTEST_PROP(LlamaSamplerFuzz, SurvivesAnySchema, ()) {
  static const std::vector<std::string> kKeys = {
      "type",     "properties", "items",   "anyOf",   "allOf",     "$ref",
      "enum",     "const",      "minimum", "maximum", "minLength", "maxLength",
      "minItems", "maxItems",   "pattern", "format",  "required",  "additionalProperties",
      "a"};
  static const std::vector<Json> kLeaves = {
      "object",    "array", "string", "integer", "number", "null",
      "boolean",   3,       -1,       1,         0,        100'000'000'000'000'000,
      5000,        true,    false,    nullptr,   "#/a",    "#/properties/a",
      "^a(b|c)*$", "^(((",  "^[^",    "date",    "uuid",   Json::array({"object", "string"})};
  const auto object = [&](auto& self, int depth) -> Json {
    Json made = Json::object();
    for (const std::string& key : some_of(kKeys, 4)) {
      const int what = *rc::gen::inRange(0, 4);
      if (what == 0 && depth < 3) {
        made[key] = self(self, depth + 1);
      } else if (what == 1 && depth < 3) {
        made[key] = Json::array({self(self, depth + 1), *rc::gen::elementOf(kLeaves)});
      } else {
        made[key] = *rc::gen::elementOf(kLeaves);
      }
    }
    return made;
  };
  try_to_sample({{"json_schema", object(object, 0)}});
}

}  // namespace
}  // namespace coppice::engine

#include "api/text_routes.h"

#include "api/errors.h"
#include "api/fields.h"
#include "api/json_text.h"
#include "api/normalise.h"
#include "api/prompts.h"
#include "base/json.h"

namespace coppice::api {
namespace {

// A piece as text, or as a list of bytes where it is no text by itself.
Json piece_json(const std::string& piece) {
  if (is_utf8(piece)) return piece;
  Json bytes = Json::array();
  for (const char c : piece) bytes.push_back(static_cast<unsigned char>(c));
  return bytes;
}

}  // namespace

Result<HttpResponse> post_tokenize(const Services& services, const HttpRequest& request) {
  auto body = parse_body(request.body);
  if (!body) return std::unexpected(body.error());
  FieldReader in(*body);
  const bool add_special = in.boolean("add_special", false);
  const bool parse_special = in.boolean("parse_special", true);
  const bool with_pieces = in.boolean("with_pieces", false);
  const Json* content = in.find("content");
  if (content == nullptr) in.fail("content", "is missing");
  if (in.error()) return std::unexpected(*in.error());

  auto tokens = tokenize_mixed(*content, services.tokenizer, add_special, parse_special, "content");
  if (!tokens) return std::unexpected(tokens.error());
  if (!with_pieces) return json_response({{"tokens", *tokens}});
  Json list = Json::array();
  for (const Token token : *tokens) {
    list.push_back({{"id", token}, {"piece", piece_json(services.tokenizer.piece(token, true))}});
  }
  return json_response({{"tokens", std::move(list)}});
}

Result<HttpResponse> post_detokenize(const Services& services, const HttpRequest& request) {
  auto body = parse_body(request.body);
  if (!body) return std::unexpected(body.error());
  FieldReader in(*body);
  const Json* list = in.find("tokens");
  if (list == nullptr || !list->is_array()) in.fail("tokens", "must be a list of token ids");
  if (in.error()) return std::unexpected(*in.error());
  for (const Json& item : *list) {
    if (!item.is_number()) return invalid("'tokens' must be a list of token ids", "tokens");
  }
  auto tokens = tokenize_mixed(*list, services.tokenizer, false, false, "tokens");
  if (!tokens) return std::unexpected(tokens.error());
  return json_response({{"content", services.tokenizer.text(*tokens, true)}});
}

Result<HttpResponse> post_apply_template(const Services& services, const HttpRequest& request) {
  auto body = parse_body(request.body);
  if (!body) return std::unexpected(body.error());
  normalise_chat(*body);
  auto prompt = services.templates.render(*body);
  if (!prompt) return std::unexpected(prompt.error());
  return json_response({{"prompt", prompt->text}});
}

}  // namespace coppice::api

#include "api/warm_routes.h"

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "api/any_draft.h"
#include "api/background_request.h"
#include "api/fields.h"
#include "api/message_role.h"
#include "api/prompts.h"
#include "api/stable_prefix.h"

namespace coppice::api {
namespace {

struct Expected {
  NamespaceId ns;
  std::shared_ptr<const Tokens> prompt;
};

// Whether it ends with what an answer is expected to, so that it can be rendered as the request that it is.
bool asks_something(const Json& body) {
  const auto messages = body.find("messages");
  if (messages == body.end() || !messages->is_array() || messages->empty()) return true;  // whoever reads it says more
  const std::string_view role = role_of(messages->back());
  return role == "user" || role == "tool";
}

Result<Expected> read_expected(const Call& call) {
  auto body = parse_any_body(call);
  if (!body) return std::unexpected(body.error());
  if (asks_something(*body)) {
    auto draft = read_any_draft(call, *std::move(body));
    if (!draft) return std::unexpected(draft.error());
    return Expected{draft->placement.ns, std::make_shared<const Tokens>(std::move(draft->prompts.front()))};
  }
  FieldReader in(*body);
  const std::string salt = in.string("cache_salt", call.services().limits.cache_salt_bytes_max);
  if (in.error()) return std::unexpected(*in.error());
  auto tokens = stable_prefix(*std::move(body), call.services());
  if (!tokens) return std::unexpected(tokens.error());
  if (auto fits = check_prompt(*tokens, call.services().model.n_ctx); !fits) return std::unexpected(fits.error());
  return Expected{call.ns(salt), std::make_shared<const Tokens>(*std::move(tokens))};
}

HttpResponse accepted(const std::string& session, const sched::Explanation& before) {
  // A request would evaluate the last token in any case.
  const TokenPos missing = before.computed > 1 ? before.computed : 0;
  HttpResponse response = json_response({{"session", session},
                                         {"tokens", before.prompt_tokens},
                                         {"held", before.prompt_tokens - missing},
                                         {"to_compute", missing}});
  response.status = 202;
  return response;
}

}  // namespace

Result<Inspection> post_warm(const Call& call) {
  const std::size_t bytes_max = call.services().limits.session_key_bytes_max;
  if (call.name.size() > bytes_max) {
    return invalid("a session's name has at most " + std::to_string(bytes_max) + " bytes", "session_id");
  }
  auto expected = read_expected(call);
  if (!expected) return std::unexpected(expected.error());
  sched::Engine& engine = call.services().engine;
  return [&engine, expected = *std::move(expected), session = std::string(call.name)](sched::Inspector& inspector,
                                                                                      const OnWorded& answer) {
    sched::Placement placement;
    placement.ns = expected.ns;
    placement.session = session;
    const sched::Explanation before = inspector.explain(*expected.prompt, placement);
    const auto submitted = engine.submit(background_request(engine, expected.ns, session, expected.prompt));
    answer([submitted, session, before] {
      return submitted ? accepted(session, before) : error_response(submitted.error());
    });
  };
}

}  // namespace coppice::api

#include "api/model_routes.h"

#include <fmt/chrono.h>

#include <algorithm>
#include <chrono>
#include <string>

#include "api/errors.h"
#include "api/query.h"
#include "base/json.h"

namespace coppice::api {
namespace {

Json slot_json(const sched::SlotInfo& slot, const ModelFacts& model) {
  Json next_token = {{"has_next_token", slot.busy}, {"n_decoded", slot.predicted}};
  Json next_tokens = Json::array();
  next_tokens.push_back(std::move(next_token));
  return {
      {"id", slot.id.value},
      {"n_ctx", model.n_ctx},
      {"speculative", false},
      {"is_processing", slot.busy},
      {"id_task", slot.request ? Json(slot.request->value) : Json(-1)},
      {"session", slot.session.empty() ? Json(nullptr) : Json(slot.session)},
      {"n_held", slot.held},
      {"n_exclusive", slot.exclusive},
      {"n_prompt_tokens", slot.prompt_tokens},
      {"n_prompt_tokens_processed", slot.processed},
      {"next_token", std::move(next_tokens)},
  };
}

Json late_system_json(const chat::LateSystemFacts& facts) {
  return {{"template", facts.native}, {"rendered_as", facts.rendered}, {"in_place", facts.in_place}};
}

// "2026-01-31T12:00:00Z"
std::string rfc3339(std::int64_t unix_s) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", std::chrono::sys_seconds(std::chrono::seconds(unix_s)));
}

Json model_json(const ModelFacts& model) {
  return {
      {"id", model.id},
      {"aliases", model.aliases},
      {"object", "model"},
      {"created", model.created_unix_s},
      {"owned_by", "coppice"},
      {"type", "model"},
      {"display_name", model.id},
      {"created_at", rfc3339(model.created_unix_s)},
      {"meta",
       {{"architecture", model.architecture},
        {"description", model.description},
        {"n_vocab", model.n_vocab},
        {"n_ctx", model.n_ctx},
        {"n_ctx_train", model.n_ctx_train},
        {"n_embd", model.n_embd},
        {"n_params", model.n_params},
        {"size", model.file_bytes}}},
  };
}

}  // namespace

HttpResponse get_health() { return json_response({{"status", "ok"}}); }

HttpResponse get_models(const Services& services) {
  Json data = Json::array();
  data.push_back(model_json(services.model));
  const std::string& id = services.model.id;
  return json_response(
      {{"object", "list"}, {"data", std::move(data)}, {"has_more", false}, {"first_id", id}, {"last_id", id}});
}

Result<HttpResponse> get_model(const Call& call) {
  const ModelFacts& model = call.services().model;
  const bool known = call.name == model.id || std::ranges::find(model.aliases, call.name) != model.aliases.end();
  if (known) return json_response(model_json(model));
  return fail(ErrorKind::not_found,
              "there is no model '" + std::string(call.name) + "'; this server has '" + model.id + "'");
}

HttpResponse get_props(const Services& services) {
  const ModelFacts& model = services.model;
  Json params = services.samplers.settings(Json::object());
  if (params.is_object()) params["n_predict"] = services.default_n_predict;
  return json_response({
      {"default_generation_settings", {{"params", std::move(params)}, {"n_ctx", model.n_ctx}}},
      {"total_slots", model.n_slots},
      {"model_alias", model.id},
      {"model_path", model.path},
      {"modalities", {{"vision", false}, {"audio", false}, {"video", false}}},
      {"endpoint_slots", services.endpoint_slots},
      {"endpoint_props", false},  // changing them is not supported
      {"endpoint_metrics", services.endpoint_metrics},
      {"chat_template", services.templates.source()},
      {"chat_template_caps", services.templates.capabilities()},
      {"late_system_messages", late_system_json(services.templates.late_system())},
      {"bos_token", model.bos_token},
      {"eos_token", model.eos_token},
      {"build_info", model.build},
      {"is_sleeping", false},
  });
}

HttpResponse get_slots(const Services& services, const HttpRequest& request) {
  if (!services.endpoint_slots) return error_response(501, "this server was started without the /slots endpoint");
  const sched::Snapshot snapshot = services.engine.snapshot();
  Json slots = Json::array();
  bool any_idle = false;
  for (const auto& slot : snapshot.slots) {
    slots.push_back(slot_json(slot, services.model));
    any_idle |= !slot.busy;
  }
  if (!any_idle && QueryReader(request.query).flag("fail_on_no_slot"))
    return error_response(503, "no slot is available");
  return json_response(slots);
}

HttpResponse get_metrics(const Services& services) {
  if (!services.endpoint_metrics) return error_response(501, "this server was started without the /metrics endpoint");
  HttpResponse response;
  response.content_type = "text/plain; version=0.0.4; charset=utf-8";
  response.body = services.metrics.text();
  return response;
}

}  // namespace coppice::api

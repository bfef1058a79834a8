// Routes that look at the engine's state, or change it, through sched::Inspector. In three steps: the handler reads the
// request, on a server thread; `look` runs on the engine thread and brings plain data back; `word` makes JSON of that,
// on a server thread again, so that the engine never waits for JSON.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "api/errors.h"
#include "api/http.h"
#include "base/json.h"
#include "sched/engine.h"

namespace coppice::api {

using Wording = std::function<HttpResponse()>;
using OnWorded = std::function<void(Wording)>;
// Gives its wording once, at once or later, on the engine thread.
using Inspection = std::function<void(sched::Inspector&, const OnWorded& answer)>;

// look: Result<T>(sched::Inspector&). word: Json(const T&).
template <class Look, class Word>
Inspection inspection(Look look, Word word) {
  return [look = std::move(look), word = std::move(word)](sched::Inspector& inspector, const OnWorded& answer) {
    answer([word, found = look(inspector)] {
      return found ? json_response(word(*found)) : error_response(found.error());
    });
  };
}

// A list as OpenAI has it. word: Json(const T&).
template <class T, class Word>
Json list_json(const std::vector<T>& items, Word word) {
  Json data = Json::array();
  for (const T& item : items) data.push_back(word(item));
  return {{"object", "list"}, {"data", std::move(data)}};
}

// What every DELETE answers.
inline Json deleted_json(TokenPos cells_freed) { return {{"deleted", true}, {"cells_freed", cells_freed}}; }

// Answers the client later. If it has gone by then, nobody hears of it.
inline void run_inspection(sched::Engine& engine, Inspection inspection, std::shared_ptr<Responder> responder) {
  engine.inspect([inspection = std::move(inspection), responder = std::move(responder)](sched::Inspector& inspector) {
    inspection(inspector, [responder](Wording wording) {
      responder->post([responder, wording = std::move(wording)] { responder->send(wording()); });
    });
  });
}

}  // namespace coppice::api

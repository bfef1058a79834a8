// Random answers: whatever the model writes, the events of a stream keep their order and agree with the final response.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <optional>
#include <set>

#include "api/fakes.h"
#include "api/responses_output.h"
#include "api/sse_for_test.h"

namespace coppice::api {
namespace {

// Follows a stream as a strict client does. Throws a text that says what was wrong.
class StrictClient {
 public:
  void read(const SseEvent& event) {
    require(event.name == event.data.value("type", ""), "the event's name is not its type");
    require(event.data["sequence_number"] == next_number_++, "a number is missing or came twice");
    require(!ended_, "an event after the end");
    const std::string type = event.name;
    if (next_number_ == 1) return require(type == "response.created", "created comes first");
    if (type == "response.in_progress") return;
    require(next_number_ > 2, "in_progress comes second");
    if (type == "response.output_item.added") return add(event.data);
    if (type == "response.completed" || type == "response.incomplete") return end(event.data["response"]);
    require(!open_.is_null(), "no item is open: " + type);
    require(event.data["output_index"] == done_.size(), "an event of an item that is not open");
    if (type == "response.output_item.done") return finish(event.data["item"]);
    require(event.data["item_id"] == open_["id"], "an event with the id of another item");
    if (type.find("summary") != std::string::npos) return read_summary(type, event.data);
    if (type.ends_with(".delta")) {
      require(state_ == State::growing, "a delta too early or too late");
      text_ += event.data["delta"].get<std::string>();
    } else if (type == "response.content_part.added") {
      step(State::added, State::growing, type);
    } else if (type == "response.content_part.done") {
      step(State::text_done, State::part_done, type);
    } else {
      require(type.ends_with(".done"), "an unknown event: " + type);
      step(State::growing, State::text_done, type);
      const char* field = type.find("arguments") != std::string::npos ? "arguments"
                          : type.find("input") != std::string::npos   ? "input"
                                                                      : "text";
      require(event.data[field] == text_, "the whole is not the sum of its deltas");
    }
  }

  bool ended() const { return ended_; }

 private:
  enum class State : std::uint8_t { added, growing, text_done, part_done };

  static void require(bool ok, const std::string& what) {
    if (!ok) throw std::runtime_error(what);
  }

  bool has_parts() const { return open_["type"] == "message" || open_["type"] == "reasoning"; }

  void add(const Json& data) {
    require(open_.is_null(), "two items are open");
    require(data["output_index"] == done_.size(), "items are not counted");
    open_ = data["item"];
    require(ids_.insert(open_["id"].get<std::string>()).second, "an id came twice");
    state_ = has_parts() ? State::added : State::growing;
    text_.clear();
  }

  // A second telling of the same text, beside the first.
  void read_summary(const std::string& type, const Json& data) {
    require(state_ == State::growing, "a summary too early or too late");
    if (type == "response.reasoning_summary_part.added") {
      summary_.emplace();
    } else if (type == "response.reasoning_summary_text.delta") {
      require(summary_.has_value(), "a summary without its part");
      *summary_ += data["delta"].get<std::string>();
    } else if (type == "response.reasoning_summary_text.done") {
      require(summary_ == data["text"].get<std::string>(), "the summary is not the sum of its deltas");
    } else {
      require(type == "response.reasoning_summary_part.done", "an unknown event: " + type);
      require(summary_ == data["part"]["text"].get<std::string>(), "the summary's part is another");
      require(summary_ == text_, "the summary is not the text");
      summary_.reset();
    }
  }

  void step(State from, State to, const std::string& type) {
    require(state_ == from, "out of order: " + type);
    state_ = to;
  }

  void finish(const Json& item) {
    require(state_ == (has_parts() ? State::part_done : State::text_done), "an item is done before its text");
    require(!summary_, "the summary is not done");
    require(item["id"] == open_["id"], "another item is done than was open");
    done_.push_back(item);
    open_ = nullptr;
  }

  void end(const Json& response) {
    require(open_.is_null(), "an item is still open at the end");
    require(response["output"] == done_, "the final output is not what was told");
    require(response["usage"].is_object(), "no usage");
    ended_ = true;
  }

  int next_number_ = 0;
  bool ended_ = false;
  Json open_, done_ = Json::array();
  State state_ = State::added;
  std::string text_;
  std::optional<std::string> summary_;  // of the part that is open
  std::set<std::string> ids_;
};

RC_GTEST_PROP(ResponsesOrder, HoldsForAnyAnswer, ()) {
  // What FakeParser reads as reasoning, text, calls of three kinds of tools, arguments, and text held back to the end.
  const auto pieces = *rc::gen::container<std::vector<std::string>>(
      rc::gen::element<std::string>("Rthink", "Rmore", "say", "more", "Tgrep", "Tpatch", "Tmcp__x__run",
                                    "A{\"input\":\"x\"}", "A{\"a\":", "A1}", "Hheld", ""));
  const bool cut = *rc::gen::arbitrary<bool>();
  const bool with_summary = *rc::gen::arbitrary<bool>();
  const int silence_at = *rc::gen::inRange(0, 20);

  FakeServer server;
  const std::string summary = with_summary ? R"("auto")" : "null";
  auto answer =
      server.post("/v1/responses", R"({"reasoning":{"summary":)" + summary +
                                       R"(},"input":"hi","stream":true,"tools":[{"type":"function","name":"grep"},
      {"type":"custom","name":"patch"},{"type":"namespace","name":"mcp__x","tools":[{"type":"function","name":"run"}]}]})");
  bool has_call = false;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    has_call |= pieces[i].starts_with('T');
    if (pieces[i].starts_with('A') && !has_call) continue;  // the parser would have nothing to add it to
    server.engine.text(0, pieces[i]);
    answer->run();
    if (std::cmp_equal(i, silence_at)) answer->write(answer->make_keepalive());
  }
  server.engine.finish(0, cut ? sched::StopKind::length : sched::StopKind::end_of_generation);
  answer->run();

  StrictClient client;
  for (const SseEvent& event : sse_events(answer->written)) client.read(event);
  RC_ASSERT(client.ended());
}

// A parser is not meant to go back to a call that is done. If one did, clients must not see an impossible order.
TEST(ResponsesOrder, ArgumentsOfACallThatIsDoneAreNotTold) {
  ResponsesOutput output("stem", {}, false);
  output.feed({.tool_index = 0, .tool_id = "c0", .tool_name = "f", .tool_arguments = "{}"});
  output.feed({.tool_index = 1, .tool_id = "c1", .tool_name = "g"});
  EXPECT_EQ(output.feed({.tool_index = 0, .tool_arguments = "late"}), "");
  output.end(true);
  EXPECT_EQ(output.items()[0]["arguments"], "{}");
}

}  // namespace
}  // namespace coppice::api

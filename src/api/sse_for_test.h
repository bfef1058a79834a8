// A stream of named server-sent events, taken apart for tests.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"

namespace coppice::api {

struct SseEvent {
  std::string name;
  Json data;
};

// Throws what Json::parse throws for a record that is none.
inline std::vector<SseEvent> sse_events(const std::string& stream) {
  std::vector<SseEvent> out;
  for (std::size_t begin = 0; begin < stream.size();) {
    const std::size_t end = std::min(stream.find("\n\n", begin), stream.size());
    const std::string record = stream.substr(begin, end - begin);
    const std::size_t line_end = record.find("\ndata: ");
    if (!record.starts_with("event: ") || line_end == std::string::npos) {
      out.push_back({"not an event: " + record, nullptr});
    } else {
      out.push_back({record.substr(7, line_end - 7), Json::parse(record.substr(line_end + 7))});
    }
    begin = end + 2;
  }
  return out;
}

}  // namespace coppice::api

// One answer's text as it grows: holds back bytes that are not whole UTF-8 yet and text that could become a stop word,
// and finds the stop word. Owner: the running request, on the engine thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace coppice::sched {

class OutputText {
 public:
  explicit OutputText(std::vector<std::string> stop_words);

  // Adds one token's bytes and returns the text that may be sent now. Once a stop word was found, text from it on is
  // gone.
  std::string add(std::string_view piece);

  // What is still held back, when generation ends for another reason than a stop word. Incomplete UTF-8 is kept as it
  // is: whoever writes JSON replaces it.
  std::string flush();

  const std::optional<std::string>& stop_word() const { return found_; }
  bool has_line_break() const { return has_line_break_; }

 private:
  std::size_t hold_back() const;

  std::vector<std::string> stop_words_;
  std::size_t longest_ = 0;  // bytes of the longest stop word
  std::string pending_;      // received, not sent
  std::optional<std::string> found_;
  bool has_line_break_ = false;
};

}  // namespace coppice::sched

#include "sched/output_text.h"

#include <algorithm>
#include <utility>

#include "base/utf8.h"

namespace coppice::sched {

OutputText::OutputText(std::vector<std::string> stop_words) : stop_words_(std::move(stop_words)) {
  std::erase(stop_words_, "");  // an empty word would stop everything at once
  for (const auto& word : stop_words_) longest_ = std::max(longest_, word.size());
}

std::string OutputText::add(std::string_view piece) {
  if (found_) return {};
  has_line_break_ = has_line_break_ || piece.find('\n') != std::string_view::npos;
  pending_ += piece;

  // Pending text is never longer than what could still become a stop word plus one piece, so a plain search stays
  // cheap.
  std::size_t first = std::string::npos;
  for (const auto& word : stop_words_) {
    const std::size_t at = pending_.find(word);
    if (at < first) first = at, found_ = word;
  }
  if (found_) {
    std::string text = pending_.substr(0, first);
    pending_.clear();
    return text;
  }
  const std::size_t held = hold_back();
  std::string text = pending_.substr(0, pending_.size() - held);
  pending_.erase(0, text.size());
  return text;
}

std::string OutputText::flush() { return found_ ? std::string() : std::exchange(pending_, {}); }

// Bytes at the end of the pending text that must wait: the longest that begins a stop word, or an unfinished character.
std::size_t OutputText::hold_back() const {
  std::size_t held = incomplete_utf8_tail(pending_);
  const std::string_view text = pending_;
  for (std::size_t n = std::min(text.size(), longest_); n > held; --n) {
    const std::string_view tail = text.substr(text.size() - n);
    if (std::any_of(stop_words_.begin(), stop_words_.end(), [&](const auto& w) { return w.starts_with(tail); }))
      return n;
  }
  return held;
}

}  // namespace coppice::sched

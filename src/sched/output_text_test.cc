#include "sched/output_text.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

namespace coppice::sched {
namespace {

TEST(OutputText, PassesPlainTextThrough) {
  OutputText text({});
  EXPECT_EQ(text.add("hello"), "hello");
  EXPECT_EQ(text.add(" world"), " world");
  EXPECT_EQ(text.flush(), "");
}

TEST(OutputText, HoldsBackWhatCouldBecomeAStopWord) {
  OutputText text({"END"});
  EXPECT_EQ(text.add("a E"), "a ");
  EXPECT_EQ(text.add("N"), "");
  EXPECT_EQ(text.add("X"), "ENX");
  EXPECT_EQ(text.add("EN"), "");
  EXPECT_EQ(text.flush(), "EN");
}

TEST(OutputText, StopsAtTheFirstOfSeveralWordsAndDropsTheRest) {
  OutputText text({"two", "one"});
  EXPECT_EQ(text.add("zero one two"), "zero ");
  EXPECT_EQ(text.stop_word(), "one");
  EXPECT_EQ(text.add("more"), "");
  EXPECT_EQ(text.flush(), "");
}

TEST(OutputText, NeverSendsHalfACharacter) {
  OutputText text({});
  EXPECT_EQ(text.add("\xF0\x9F"), "");
  EXPECT_EQ(text.add("\x98\x80!"), "\xF0\x9F\x98\x80!");
}

TEST(OutputText, BytesThatAreNeverUtf8DoNotBlockTheStream) {
  OutputText text({});
  EXPECT_EQ(text.add("\xFFok"), "\xFFok");
  EXPECT_EQ(text.add("\xE2\x82"), "");
  EXPECT_EQ(text.flush(), "\xE2\x82");
}

TEST(OutputText, EmptyStopWordsAreIgnored) {
  OutputText text({""});
  EXPECT_EQ(text.add("a"), "a");
  EXPECT_FALSE(text.stop_word());
}

// However the text is cut into pieces, what comes out is the text up to the first stop word.
RC_GTEST_PROP(OutputText, DoesNotDependOnHowTextIsCut, ()) {
  const auto letters = rc::gen::container<std::string>(rc::gen::elementOf(std::string("ab\n")));
  const std::string whole = *letters;
  const std::vector<std::string> words = *rc::gen::container<std::vector<std::string>>(letters);
  std::size_t first = whole.size();
  for (const auto& w : words) {
    if (!w.empty()) first = std::min(first, whole.find(w));
  }
  OutputText text(words);
  std::string out;
  for (std::size_t at = 0; at < whole.size() && !text.stop_word();) {
    const std::size_t n = static_cast<std::size_t>(*rc::gen::inRange(1, 5));
    out += text.add(std::string_view(whole).substr(at, n));
    at += n;
  }
  out += text.flush();
  // With two words that begin at different places inside one piece the earlier wins only if it is complete by then.
  if (words.size() <= 1) {
    RC_ASSERT(out == whole.substr(0, first));
  } else {
    RC_ASSERT(whole.starts_with(out));
    RC_ASSERT(out.size() >= first);
  }
}

}  // namespace
}  // namespace coppice::sched

#include "engine/gbnf_parser.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

namespace coppice::engine::gbnf {
namespace {

constexpr std::size_t kTextBytesMax = 4 << 20;
constexpr int kNestingMax = 200;
constexpr std::int64_t kRepeatMax = 2000;         // llama.cpp's own limit
constexpr std::int64_t kElementsMax = 2'000'000;  // of llama.cpp's, after repetitions are written out
constexpr std::int64_t kRuleCost = 16;            // elements that take the memory of one rule

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || is_digit(c); }
bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

struct SyntaxError {
  std::string message;
};

// Recursive descent. Leaves by SyntaxError, which does not leave this file.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Grammar run() {
    if (text_.size() > kTextBytesMax) throw SyntaxError{"a grammar may have at most 4 MiB"};
    if (text_.find('\0') != std::string_view::npos) throw SyntaxError{"a grammar may not contain a NUL character"};
    space(true);
    while (!at_end()) rule();
    if (grammar_.rules.empty()) throw SyntaxError{"the grammar is empty"};
    for (const Rule& r : grammar_.rules) {
      if (!r.defined) throw SyntaxError{"rule '" + r.name + "' is used but not defined"};
    }
    const auto root = by_name_.find("root");
    if (root == by_name_.end()) throw SyntaxError{"the grammar has no rule named 'root'"};
    grammar_.root = root->second;
    return std::move(grammar_);
  }

  std::string position() const {
    const std::string_view before = text_.substr(0, pos_);
    return "line " + std::to_string(1 + std::count(before.begin(), before.end(), '\n'));
  }

 private:
  bool at_end() const { return pos_ >= text_.size(); }
  char peek(std::size_t ahead = 0) const { return pos_ + ahead < text_.size() ? text_[pos_ + ahead] : '\0'; }
  void expect(char c) {
    if (peek() != c) throw SyntaxError{std::string("expected '") + c + "'"};
    ++pos_;
  }

  void space(bool newline_ok) {
    for (;; ++pos_) {
      if (peek() == '#') {
        while (!at_end() && peek() != '\r' && peek() != '\n') ++pos_;
      }
      const bool newline = peek() == '\r' || peek() == '\n';
      if (at_end() || !(peek() == ' ' || peek() == '\t' || (newline_ok && newline))) return;
    }
  }

  std::string name() {
    const std::size_t begin = pos_;
    while (is_name(peek())) ++pos_;
    if (begin == pos_) throw SyntaxError{"expected the name of a rule"};
    return std::string(text_.substr(begin, pos_ - begin));
  }

  int rule_id(const std::string& rule_name) {
    const auto [it, is_new] = by_name_.try_emplace(rule_name, static_cast<int>(grammar_.rules.size()));
    if (is_new) add_rule({.name = rule_name});
    return it->second;
  }

  int add_rule(Rule r) {
    spend(kRuleCost);
    grammar_.rules.push_back(std::move(r));
    return static_cast<int>(grammar_.rules.size()) - 1;
  }

  void spend(std::int64_t elements) {
    elements_ += elements;
    if (elements_ > kElementsMax) throw SyntaxError{"the grammar is too large; use fewer rules or repetitions"};
  }

  void rule() {
    const std::string rule_name = name();
    const int id = rule_id(rule_name);
    space(false);
    if (peek() != ':' || peek(1) != ':' || peek(2) != '=') throw SyntaxError{"expected '::=' after a rule's name"};
    pos_ += 3;
    space(true);
    define(id, alternates(rule_name, 0));
    if (!at_end() && peek() != '\r' && peek() != '\n') throw SyntaxError{"expected the end of the line"};
    space(true);
  }

  void define(int id, std::vector<Alternate> alternates) {
    Rule& r = grammar_.rules[static_cast<std::size_t>(id)];
    r.defined = true;
    r.alternates = std::move(alternates);  // of two definitions the later one counts
  }

  std::vector<Alternate> alternates(const std::string& rule_name, int nesting) {
    if (nesting > kNestingMax) throw SyntaxError{"parentheses are nested too deeply"};
    std::vector<Alternate> result;
    result.push_back(sequence(rule_name, nesting));
    while (peek() == '|') {
      ++pos_;
      space(true);
      result.push_back(sequence(rule_name, nesting));
    }
    return result;
  }

  // One alternate. `symbol` is where the last symbol, which a repetition repeats, begins in it.
  Alternate sequence(const std::string& rule_name, int nesting) {
    Alternate to;
    std::size_t symbol = 0;
    std::int64_t symbol_cost = 0;
    const bool nested = nesting > 0;
    while (!at_end()) {
      const char c = peek();
      if (c == '*' || c == '+' || c == '?' || c == '{') {
        symbol_cost = repetition(to, symbol, symbol_cost, rule_name, nested);
        continue;
      }
      const std::size_t begin = to.size();
      std::int64_t cost = 1;
      if (c == '"') {
        cost = literal();
        if (cost > 0) to.push_back({});
      } else if (c == '[') {
        cost = char_class();
        if (cost > 0) to.push_back({});
      } else if (c == '<' || c == '!') {
        token();
        to.push_back({});
      } else if (is_name(c)) {
        to.push_back({.rule = rule_id(name())});
      } else if (c == '(') {
        ++pos_;
        space(true);
        const int id = add_rule({.name = rule_name});
        define(id, alternates(rule_name, nesting + 1));
        to.push_back({.rule = id});
        expect(')');
      } else if (c == '.') {
        ++pos_;
        to.push_back({});
      } else {
        break;
      }
      spend(cost);
      symbol = begin;
      symbol_cost = cost;
      space(nested);
    }
    return to;
  }

  void escaped_or_plain() {
    if (peek() != '\\') {
      // As many bytes as the first one announces, whatever they are.
      static constexpr int kLength[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 3, 4};
      const int length = kLength[static_cast<unsigned char>(peek()) >> 4];
      pos_ = std::min(text_.size(), pos_ + static_cast<std::size_t>(length));
      return;
    }
    static constexpr std::string_view kPlain = "tnr\\\"[]-";
    const char kind = peek(1);
    pos_ += 2;
    int digits = kind == 'x' ? 2 : kind == 'u' ? 4 : kind == 'U' ? 8 : 0;
    if (digits == 0 && (kind == '\0' || kPlain.find(kind) == std::string_view::npos)) {
      throw SyntaxError{std::string("unknown escape '\\") + kind + "'"};
    }
    for (; digits > 0; --digits, ++pos_) {
      if (!is_hex(peek())) throw SyntaxError{"an escape has too few hexadecimal digits"};
    }
  }

  std::int64_t literal() {
    std::int64_t n = 0;
    for (++pos_; peek() != '"'; ++n) {
      if (at_end()) throw SyntaxError{"a '\"' is not closed"};
      escaped_or_plain();
    }
    ++pos_;
    return n;
  }

  std::int64_t char_class() {
    std::int64_t n = 0;
    ++pos_;
    if (peek() == '^') ++pos_;
    for (; peek() != ']'; ++n) {
      if (at_end()) throw SyntaxError{"a '[' is not closed"};
      escaped_or_plain();
      if (peek() == '-' && peek(1) != ']') {
        ++pos_;
        if (at_end()) throw SyntaxError{"a '[' is not closed"};
        escaped_or_plain();
        ++n;
      }
    }
    ++pos_;
    return n;
  }

  void token() {
    if (peek() == '!') ++pos_;
    expect('<');
    while (!at_end() && peek() != '>') ++pos_;
    expect('>');
  }

  std::optional<std::int64_t> number() {
    if (!is_digit(peek())) return std::nullopt;
    std::int64_t value = 0;
    for (; is_digit(peek()); ++pos_) value = std::min<std::int64_t>(value * 10 + (peek() - '0'), 1'000'000'000);
    return value;
  }

  struct Bounds {
    std::int64_t min = 0;
    std::optional<std::int64_t> max;  // none: without end
  };

  Bounds bounds(bool nested) {
    const char c = peek();
    ++pos_;
    space(nested);
    if (c == '*') return {0, {}};
    if (c == '+') return {1, {}};
    if (c == '?') return {0, 1};
    const auto min = number();
    if (!min) throw SyntaxError{"expected a number after '{'"};
    Bounds result{*min, *min};
    space(nested);
    if (peek() == ',') {
      ++pos_;
      space(nested);
      result.max = number();
      space(nested);
    }
    expect('}');
    space(nested);
    if (result.min > kRepeatMax) throw SyntaxError{"a repetition may have at most 2000 rounds"};
    if (result.max && *result.max < result.min) {
      throw SyntaxError{"a repetition's upper bound is below its lower one, as in {3,1}"};
    }
    if (result.max && *result.max > kRepeatMax) result.max.reset();  // as llama.cpp does
    return result;
  }

  // What stands from `symbol` to the end of `to`, as one element.
  Element take_symbol(Alternate& to, std::size_t symbol, const std::string& rule_name) {
    Alternate last(to.begin() + static_cast<std::ptrdiff_t>(symbol), to.end());
    to.resize(symbol);
    if (last.size() == 1 && last.front().repeat == 1) return last.front();
    const int id = add_rule({.name = rule_name});  // a repetition of a repetition, as in x{2}{3}
    define(id, {std::move(last)});
    return {.rule = id};
  }

  // Replaces the last symbol by its repetition; returns what that costs.
  std::int64_t repetition(Alternate& to, std::size_t symbol, std::int64_t cost, const std::string& rule_name,
                          bool nested) {
    if (symbol == to.size()) throw SyntaxError{"a repetition has nothing before it to repeat"};
    const Bounds b = bounds(nested);
    const Element once = take_symbol(to, symbol, rule_name);
    const std::int64_t optional = b.max ? *b.max - b.min : 1;
    const std::int64_t total = b.min * cost + optional * (cost + kRuleCost);
    spend(total);
    if (b.min > 0) to.push_back({.rule = once.rule, .repeat = b.min});
    if (optional > 0) {
      const int id = add_rule({.name = rule_name, .defined = true, .chain = optional});
      Alternate round{once};
      if (!b.max) round.push_back({.rule = id});
      grammar_.rules.back().alternates = {std::move(round), {}};
      to.push_back({.rule = id});
    }
    return total;
  }

  std::string_view text_;
  std::size_t pos_ = 0;
  std::int64_t elements_ = 0;
  Grammar grammar_;
  std::unordered_map<std::string, int> by_name_;
};

}  // namespace

Result<Grammar> parse(std::string_view text) {
  Parser parser(text);
  try {
    return parser.run();
  } catch (const SyntaxError& e) {
    return invalid(e.message + " (" + parser.position() + ")");
  }
}

}  // namespace coppice::engine::gbnf

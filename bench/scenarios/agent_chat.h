// An agent's conversation with a server over Chat Completions: messages of a user, tool calls with their results,
// answers; thoughts before each. All of it is the server's own, sent back as it was given.
//
// Models of random weights think no thoughts and call no tools, so both are made to, by what Coppice and llama-server
// take alike: thoughts by a reasoning budget of one token and the text that is forced when it is spent, a call by
// `tool_choice` with all weight on the token that begins one, and the answer by a grammar. A grammar together with
// tools is allowed with `tool_choice` none alone. Hence the server needs a template whose prompt opens the thoughts
// (<think>) and whose calls begin with a token of their own (<tool_call>): Qwen3.5's is one, and so is QwQ's.
//
// Threading: none. The peer is borrowed.
#pragma once

#include <cstdint>
#include <string>

#include "peers/peer.h"

namespace coppice::bench {

// In tokens, about: texts are words, cut to length by how many tokens a word has on average.
struct ChatLengths {
  std::size_t system = 200, thought = 64, result = 300, answer = 32, message = 40;
};

class AgentChat {
 public:
  // With the system's message. The text depends on the seed alone, if the servers' tokenizers are the same.
  static Result<AgentChat> begin(const Peer& peer, const ChatLengths& lengths, std::uint64_t seed);

  // A message of the user, and how many tokens its text has.
  Result<std::size_t> say();
  // The server thinks and calls the tool, and gets the result.
  Result<Completion> call_tool();
  // The server thinks and answers.
  Result<Completion> answer();

 private:
  AgentChat(const Peer& peer, const ChatLengths& lengths, std::uint64_t seed)
      : peer_(&peer), lengths_(lengths), seed_(seed) {}

  Status measure_words();
  std::string words(std::size_t n_tokens);
  Result<Completion> ask(Json options);

  const Peer* peer_;
  ChatLengths lengths_;
  std::uint64_t seed_;
  double tokens_per_word_ = 1;
  std::int32_t call_token_ = 0;
  Json messages_ = Json::array();
};

}  // namespace coppice::bench

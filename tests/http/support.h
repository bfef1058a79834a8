// What the end-to-end tests share: a fixture with a server, prompts of known length and content, and readers of what
// the server says of itself.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/json.h"
#include "client.h"
#include "server_process.h"

namespace coppice::http_test {

class ServerTest : public ::testing::Test {
 protected:
  // The built-in model unless `args` names another. A fatal failure if it does not start.
  void serve(const std::vector<std::string>& args);
  const Client& client() const { return *client_; }
  ServerProcess& server() { return *server_; }
  void stop();  // ends the server; the destructor does it too

  Tokens tokenize(const std::string& text) const;
  Tokens tokens_of(const Json& messages) const;  // as the chat route makes them
  double metric(const std::string& name) const;  // with its labels, if it has some; -1 if there is none
  Json slot(int id) const;                       // of /slots

  std::unique_ptr<ServerProcess> server_;
  std::unique_ptr<Client> client_;
};

// Whether the condition holds at last; looks again and again for up to half a minute.
bool eventually(const std::function<bool()>& condition);

Json system(const std::string& text);
Json user(const std::string& text);
Json assistant(const std::string& text);
Json messages(std::initializer_list<Json> list);

// Lines that state nothing that anyone asks about, the same for the same seed. For the built-in model; about 20 tokens
// each. Which seeds it can read past was found by trying them on a cold cache.
std::string filler(std::uint64_t seed, int lines);

// Token ids without meaning, for models with random weights. Different from the first token on for different seeds.
Tokens random_tokens(std::uint64_t seed, std::size_t count);

TokenPos common_prefix(const Tokens& a, const Tokens& b);
TokenPos length(const Tokens& tokens);
Tokens joined(const Tokens& a, const Tokens& b);
Tokens first(const Tokens& tokens, TokenPos count);

// A /completion body: these tokens, greedy, the answer's tokens included.
Json greedy(const Tokens& prompt, int n_predict);

// What a slot holds after an answer to greedy(): the last token is never evaluated, and a token that ends the
// generation is not among the answer's.
Tokens held_after(const Tokens& prompt, const Json& answer);

// Whether two answers to one prompt go on alike: what is likely in one is as likely in the other. Random prompts leave
// many tokens nearly equal, so that greedy answers may part over rounding alone; other KV gives other favourites.
// REQUIRES: both were asked with n_probs.
bool agree(const Json& answer, const Json& cold);

// Parts of a chat answer.
std::string content(const Json& answer);

// One whole stream: its JSON events, and how it ended.
struct Events {
  int status = 0;
  std::vector<Json> list;
  bool done = false, complete = false;

  const Json& last() const { return list.back(); }
  std::string text() const;  // all content of all events, whatever the route
};
Events collect(Stream stream);

}  // namespace coppice::http_test

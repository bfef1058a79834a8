// From what a request says to what the exchange runs: the steps that the completion routes share.
#pragma once

#include <string>
#include <string_view>

#include "api/completion_draft.h"
#include "api/exchange.h"
#include "api/format.h"

namespace coppice::api {

// Unlike any other response's, in this process and most likely in all others: `prefix` and 32 hexadecimal digits.
std::string make_id(std::string_view prefix);

FormatFacts make_facts(const Services& services, const CompletionDraft& draft, std::string_view id_prefix);

// All but the format.
CompletionPlan make_plan(CompletionDraft draft);

// What the rendered chat demands of its answers, beside the stop words of the request.
void set_output_rules(const chat::Prompt& prompt, const Services& services, CompletionPlan& plan);

struct ChatPlan {
  CompletionPlan plan;  // all but the format
  FormatFacts facts;
  chat::Prompt prompt;  // for the format
};

// REQUIRES: a draft of ApiKind::chat.
ChatPlan make_chat_plan(const Services& services, CompletionDraft draft, FormatFacts facts);
ChatPlan make_chat_plan(const Services& services, CompletionDraft draft, std::string_view id_prefix);

}  // namespace coppice::api

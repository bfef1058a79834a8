#include "sched/admission.h"

#include <algorithm>

#include "kv/prefix.h"

namespace coppice::sched {
namespace {

using kv::MissReason;

// `hoped`: tokens of the prompt that were known once; `common`: how many of them the prompt really begins with.
Miss judge(const AdmissionFacts& facts, TokenPos hoped, TokenPos common, MissReason when_gone) {
  const TokenPos reused = facts.known();
  if (reused >= hoped) return {};
  if (facts.plan.not_rewindable) return {MissReason::not_rewindable};
  if (common < hoped && reused >= common) return {MissReason::diverged, common};
  return {when_gone};
}

}  // namespace

kv::Source source_of(const kv::ReusePlan& plan, TokenPos host, TokenPos disk) {
  if (disk > std::max(plan.reused, host)) return kv::Source::disk;
  return host > plan.reused ? kv::Source::host : plan.source;
}

Miss explain_miss(const AdmissionFacts& facts, const Tokens& prompt) {
  const kv::ReuseQuery& query = facts.query;
  if (!query.cache_prompt) return {MissReason::disabled};
  const TokenPos most = query.prompt_length - 1;

  if (query.named) {
    const kv::Holder holder = query.named->holder.value_or(kv::Holder{});
    const TokenPos promised = std::min(query.named->prefix, most);
    const TokenPos held = std::min(holder.held, promised);
    const TokenPos common = std::min(holder.common, promised);
    // What it holds agrees as far as it goes, but it does not go far enough: it is not the prompt's fault.
    const bool too_short = common == held && held < promised;
    if (Miss miss = judge(facts, promised, too_short ? promised : common, MissReason::not_resident);
        miss.reason != MissReason::none) {
      return miss;
    }
  }
  if (facts.last_prompt != nullptr) {
    const TokenPos hoped = std::min(facts.last_prompt_tokens, most);
    const TokenPos agreed = kv::common_prefix(*facts.last_prompt, prompt);
    // Of a session of before the start, tokens may be lost with their blocks: whatever they were, their KV is gone.
    const bool all_agrees = static_cast<std::size_t>(agreed) == facts.last_prompt->size();
    const TokenPos common = all_agrees ? hoped : std::min(agreed, hoped);
    return judge(facts, hoped, common, MissReason::evicted);
  }
  if (facts.has_session) return {MissReason::fresh};
  if (query.own && (facts.rule == kv::SlotRule::similarity || facts.rule == kv::SlotRule::explicit_id)) {
    const TokenPos hoped = std::min(query.own->held, most);
    if (hoped > 0) return judge(facts, hoped, std::min(query.own->common, hoped), MissReason::evicted);
  }
  return {query.named ? MissReason::none : MissReason::fresh};
}

}  // namespace coppice::sched

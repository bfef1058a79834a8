// The architectures of the test models: the smallest shapes that keep what makes each one different for a cache. Names
// of keys and tensors are those of llama.cpp v0.4.0.
#include <algorithm>

#include "model_plan.h"

namespace coppice::tools {
namespace {

constexpr std::uint32_t head_dim = 64;
constexpr std::uint32_t sliding_window = 64;  // prompts of a few hundred tokens leave it behind
constexpr std::uint32_t n_expert = 4, n_expert_used = 3;
constexpr std::uint32_t gating_sigmoid = 2;  // llama.cpp's number for sigmoid routing, as DeepSeek V3 does it

// Dimensions that follow from the size of a model.
struct Dims {
  explicit Dims(const ModelSize& size)
      : embd(size.n_embd), layers(size.n_layer), heads(size.n_embd / head_dim), q(heads * head_dim), kv(q / 2) {}

  std::uint32_t embd, layers, heads;
  std::uint32_t q, kv;  // widths of all query heads and of all key heads; two query heads share a key head
  std::uint32_t ff = 2 * embd, expert_ff = embd;
};

// Adds the tensors of one layer.
class Block {
 public:
  Block(ModelPlan& plan, std::uint32_t layer) : plan_(plan), prefix_("blk." + std::to_string(layer) + ".") {}

  void add(std::string_view name, std::vector<std::int64_t> shape, Fill fill = Fill::matrix) {
    plan_.tensor(prefix_ + std::string(name), std::move(shape), fill);
  }
  void norm(std::string_view name, std::uint32_t width) { add(name, {width}, Fill::norm); }

  // Queries, keys and values. `q` may be wider than the query heads, for a gate that some models put beside them.
  void attention(const Dims& d, std::uint32_t q) {
    add("attn_q.weight", {d.embd, q}, Fill::query);
    add("attn_k.weight", {d.embd, d.kv});
    add("attn_v.weight", {d.embd, d.kv});
    add("attn_output.weight", {d.q, d.embd});
  }
  void query_key_norms() {
    add("attn_q_norm.weight", {head_dim}, Fill::query_norm);
    norm("attn_k_norm.weight", head_dim);
  }
  void feed_forward(const Dims& d) {
    add("ffn_gate.weight", {d.embd, d.ff});
    add("ffn_up.weight", {d.embd, d.ff});
    add("ffn_down.weight", {d.ff, d.embd});
  }
  void experts(const Dims& d) {
    add("ffn_gate_inp.weight", {d.embd, n_expert}, Fill::router);
    add("ffn_gate_exps.weight", {d.embd, d.expert_ff, n_expert});
    add("ffn_up_exps.weight", {d.embd, d.expert_ff, n_expert});
    add("ffn_down_exps.weight", {d.expert_ff, d.embd, n_expert});
  }

 private:
  ModelPlan& plan_;
  std::string prefix_;
};

void add_common(ModelPlan& p, const Dims& d, std::string_view output_norm = "output_norm.weight") {
  p.key("context_length", p.size.n_ctx);
  p.key("embedding_length", d.embd);
  p.key("block_count", d.layers);
  p.key("feed_forward_length", d.ff);
  p.key("attention.layer_norm_rms_epsilon", 1e-6F);
  p.tensor("token_embd.weight", {d.embd, p.n_vocab}, Fill::unit);
  p.tensor(output_norm, {d.embd}, Fill::norm);
  p.tensor("output.weight", {d.embd, p.n_vocab}, Fill::matrix);
}

void add_head_keys(ModelPlan& p, const Dims& d) {
  p.key("attention.head_count", d.heads);
  p.key("attention.head_count_kv", d.heads / 2);
  p.key("attention.key_length", head_dim);
  p.key("attention.value_length", head_dim);
}

void add_expert_keys(ModelPlan& p, const Dims& d) {
  p.key("expert_count", n_expert);
  p.key("expert_used_count", n_expert_used);
  p.key("expert_feed_forward_length", d.expert_ff);
}

void qwen3(ModelPlan& p) {
  const Dims d(p.size);
  add_common(p, d);
  add_head_keys(p, d);
  for (std::uint32_t i = 0; i < d.layers; ++i) {
    Block b(p, i);
    b.norm("attn_norm.weight", d.embd);
    b.attention(d, d.q);
    b.query_key_norms();
    b.norm("ffn_norm.weight", d.embd);
    b.feed_forward(d);
  }
}

// Every second layer sees a window only, the others see everything. Experts in all layers, attention sinks.
void gpt_oss(ModelPlan& p) {
  const Dims d(p.size);
  add_common(p, d);
  add_head_keys(p, d);
  add_expert_keys(p, d);
  p.key("attention.sliding_window", sliding_window);
  for (std::uint32_t i = 0; i < d.layers; ++i) {
    Block b(p, i);
    b.norm("attn_norm.weight", d.embd);
    b.attention(d, d.q);
    b.add("attn_output.bias", {d.embd}, Fill::bias);
    b.add("attn_sinks.weight", {d.heads}, Fill::unit);
    b.norm("post_attention_norm.weight", d.embd);
    b.experts(d);
    b.add("ffn_gate_inp.bias", {n_expert}, Fill::bias);
    b.add("ffn_gate_exps.bias", {d.expert_ff, n_expert}, Fill::bias);
    b.add("ffn_up_exps.bias", {d.expert_ff, n_expert}, Fill::bias);
    b.add("ffn_down_exps.bias", {d.embd, n_expert}, Fill::bias);
  }
}

void gemma3(ModelPlan& p) {
  const Dims d(p.size);
  add_common(p, d);
  add_head_keys(p, d);
  p.key("attention.sliding_window", sliding_window);
  p.key("attention.sliding_window_pattern", 2U);
  for (std::uint32_t i = 0; i < d.layers; ++i) {
    Block b(p, i);
    b.norm("attn_norm.weight", d.embd);
    b.attention(d, d.q);
    b.query_key_norms();
    b.norm("post_attention_norm.weight", d.embd);
    b.norm("ffn_norm.weight", d.embd);
    b.feed_forward(d);
    b.norm("post_ffw_norm.weight", d.embd);
  }
}

// Multi-head latent attention: the cache holds one compressed row per token, which all heads share. After a first dense
// layer, routed experts and a shared one.
void deepseek2(ModelPlan& p) {
  const Dims d(p.size);
  constexpr std::uint32_t rope = 32, kv_rank = 64, q_rank = 128;
  add_common(p, d);
  p.key("attention.head_count", d.heads);
  p.key("attention.head_count_kv", 1U);
  p.key("attention.q_lora_rank", q_rank);
  p.key("attention.kv_lora_rank", kv_rank);
  p.key("attention.key_length", kv_rank + rope);
  p.key("attention.value_length", kv_rank);
  p.key("attention.key_length_mla", head_dim + rope);
  p.key("attention.value_length_mla", head_dim);
  p.key("rope.dimension_count", rope);
  add_expert_keys(p, d);
  p.key("leading_dense_block_count", 1U);
  p.key("expert_shared_count", 1U);
  p.key("expert_gating_func", gating_sigmoid);
  p.key("expert_weights_norm", true);
  p.key("expert_weights_scale", 1.0F);
  for (std::uint32_t i = 0; i < d.layers; ++i) {
    Block b(p, i);
    b.norm("attn_norm.weight", d.embd);
    b.add("attn_q_a.weight", {d.embd, q_rank});
    b.norm("attn_q_a_norm.weight", q_rank);
    b.add("attn_q_b.weight", {q_rank, d.heads * (head_dim + rope)}, Fill::query);
    b.add("attn_kv_a_mqa.weight", {d.embd, kv_rank + rope});
    b.norm("attn_kv_a_norm.weight", kv_rank);
    b.add("attn_k_b.weight", {head_dim, kv_rank, d.heads});
    b.add("attn_v_b.weight", {kv_rank, head_dim, d.heads});
    b.add("attn_output.weight", {d.heads * head_dim, d.embd});
    b.norm("ffn_norm.weight", d.embd);
    if (i == 0) {
      b.feed_forward(d);
      continue;
    }
    b.experts(d);
    b.add("ffn_gate_shexp.weight", {d.embd, d.expert_ff});
    b.add("ffn_up_shexp.weight", {d.embd, d.expert_ff});
    b.add("ffn_down_shexp.weight", {d.expert_ff, d.embd});
  }
}

// A gated delta net (recurrent) and full attention take turns.
void qwen35(ModelPlan& p) {
  const Dims d(p.size);
  constexpr std::uint32_t conv = 4;
  const std::uint32_t key_heads = d.heads / 2, channels = (2 * key_heads + d.heads) * head_dim;
  add_common(p, d);
  add_head_keys(p, d);
  p.key("full_attention_interval", 2U);
  p.key("rope.dimension_count", head_dim / 2);
  p.key("rope.dimension_sections", std::vector<std::uint32_t>{6, 5, 5, 0});  // together half of the rotated dimensions
  p.key("ssm.conv_kernel", conv);
  p.key("ssm.state_size", head_dim);
  p.key("ssm.time_step_rank", d.heads);
  p.key("ssm.group_count", key_heads);
  p.key("ssm.inner_size", d.heads * head_dim);
  for (std::uint32_t i = 0; i < d.layers; ++i) {
    Block b(p, i);
    b.norm("attn_norm.weight", d.embd);
    if (i % 2 == 1) {
      b.attention(d, 2 * d.q);
      b.query_key_norms();
    } else {
      b.add("attn_qkv.weight", {d.embd, channels});
      b.add("attn_gate.weight", {d.embd, d.heads * head_dim});
      b.add("ssm_conv1d.weight", {conv, channels});
      b.add("ssm_dt.bias", {d.heads}, Fill::bias);
      b.add("ssm_a", {d.heads}, Fill::decay);
      b.add("ssm_beta.weight", {d.embd, d.heads});
      b.add("ssm_alpha.weight", {d.embd, d.heads});
      b.norm("ssm_norm.weight", head_dim);
      b.add("ssm_out.weight", {d.heads * head_dim, d.embd});
    }
    b.norm("post_attention_norm.weight", d.embd);
    b.feed_forward(d);
  }
}

// Short convolutions and full attention take turns; a layer without key heads is a convolution.
void lfm2(ModelPlan& p) {
  const Dims d(p.size);
  constexpr std::uint32_t conv = 3;
  add_common(p, d, "token_embd_norm.weight");  // llama.cpp's name for this model's last norm
  std::vector<std::uint32_t> key_heads;
  for (std::uint32_t i = 0; i < d.layers; ++i) key_heads.push_back(i % 2 == 0 ? 0 : d.heads / 2);
  p.key("attention.head_count", d.heads);
  p.key("attention.head_count_kv", key_heads);
  p.key("shortconv.l_cache", conv);
  for (std::uint32_t i = 0; i < d.layers; ++i) {
    Block b(p, i);
    b.norm("attn_norm.weight", d.embd);
    if (key_heads[i] > 0) {
      b.attention(d, d.q);
      b.query_key_norms();
    } else {
      b.add("shortconv.conv.weight", {conv, d.embd});
      b.add("shortconv.in_proj.weight", {d.embd, 3 * d.embd});
      b.add("shortconv.out_proj.weight", {d.embd, d.embd});
    }
    b.norm("ffn_norm.weight", d.embd);
    b.feed_forward(d);
  }
}

void mamba2(ModelPlan& p) {
  const Dims d(p.size);
  constexpr std::uint32_t conv = 4, groups = 1;
  const std::uint32_t inner = 2 * d.embd, heads = inner / head_dim, channels = inner + 2 * groups * head_dim;
  add_common(p, d);
  p.key("attention.head_count", 0U);
  p.key("ssm.conv_kernel", conv);
  p.key("ssm.inner_size", inner);
  p.key("ssm.state_size", head_dim);
  p.key("ssm.time_step_rank", heads);
  p.key("ssm.group_count", groups);
  for (std::uint32_t i = 0; i < d.layers; ++i) {
    Block b(p, i);
    b.norm("attn_norm.weight", d.embd);
    b.add("ssm_in.weight", {d.embd, inner + channels + heads});
    b.add("ssm_conv1d.weight", {conv, channels});
    b.add("ssm_conv1d.bias", {channels}, Fill::bias);
    b.add("ssm_dt.bias", {heads}, Fill::bias);
    b.add("ssm_a", {1, heads}, Fill::decay);
    b.add("ssm_d", {1, heads}, Fill::norm);
    b.add("ssm_norm.weight", {inner / groups, groups}, Fill::norm);
    b.add("ssm_out.weight", {inner, d.embd});
  }
}

template <class T>
const T* find_by_name(const std::vector<T>& all, std::string_view name) {
  const auto it = std::ranges::find(all, name, &T::name);
  return it == all.end() ? nullptr : &*it;
}

}  // namespace

const std::vector<Architecture>& architectures() {
  static const std::vector<Architecture> all = {
      {"qwen3", qwen3, 2},   {"gpt-oss", gpt_oss, 2}, {"gemma3", gemma3, 2}, {"deepseek2", deepseek2, 2},
      {"qwen35", qwen35, 2}, {"lfm2", lfm2, 2},       {"mamba2", mamba2, 1},
  };
  return all;
}

const std::vector<ModelSize>& model_sizes() {
  // The sizes that are numbers are for benchmarks, and named for the parameters that qwen3 has.
  static const std::vector<ModelSize> all = {{"tiny", 128, 4},
                                             {"small", 512, 8},
                                             {"600k", 128, 2, 131072, true},
                                             {"5m", 256, 8, 131072, true},
                                             {"60m", 768, 11, 131072, true},
                                             {"600m", 2048, 16, 131072, true}};
  return all;
}

const Architecture* find_architecture(std::string_view name) { return find_by_name(architectures(), name); }
const ModelSize* find_model_size(std::string_view name) { return find_by_name(model_sizes(), name); }

}  // namespace coppice::tools

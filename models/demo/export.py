"""Writes a checkpoint of train.py as GGUF (architecture "llama").

    python3 export.py model.pt coppice-demo.gguf [f32|f16|q8_0]

GGUF_PY names the folder of llama.cpp's gguf-py, unless Python finds the package gguf by itself.
"""
import os
import sys
from pathlib import Path

import numpy as np
import torch

if "GGUF_PY" in os.environ:
    sys.path.insert(0, os.environ["GGUF_PY"])
import gguf                                        # noqa: E402
from tokenizer import MARKS, SPECIALS, Tokenizer   # noqa: E402
from train import CONFIG                           # noqa: E402

ABOUT = ("A tiny chat model for tests of the Coppice inference server, trained from scratch on "
         "synthetic dialogues: it copies facts from its context and calls tools. Not a general assistant.")


def interleave(w, heads):
    """From rotation by halves (train.py) to rotation of neighbours (llama.cpp)."""
    rows, cols = w.shape
    return w.reshape(heads, 2, rows // heads // 2, cols).swapaxes(1, 2).reshape(rows, cols)


def main(checkpoint, target, kind="q8_0"):
    c, tk = CONFIG, Tokenizer()
    sd = {k: v.float().numpy() for k, v in torch.load(checkpoint, map_location="cpu")["model"].items()}
    types = {"f32": gguf.GGMLQuantizationType.F32, "f16": gguf.GGMLQuantizationType.F16,
             "q8_0": gguf.GGMLQuantizationType.Q8_0}
    files = {"f32": gguf.LlamaFileType.ALL_F32, "f16": gguf.LlamaFileType.MOSTLY_F16,
             "q8_0": gguf.LlamaFileType.MOSTLY_Q8_0}
    w = gguf.GGUFWriter(target, "llama")
    w.add_name("Coppice demo")
    w.add_description(ABOUT)
    w.add_license("MIT")
    w.add_file_type(files[kind])
    w.add_vocab_size(len(tk.tokens))
    w.add_context_length(c["context"])
    w.add_embedding_length(c["dim"])
    w.add_block_count(c["layers"])
    w.add_feed_forward_length(c["ffn"])
    w.add_head_count(c["heads"])
    w.add_head_count_kv(c["kv_heads"])
    w.add_key_length(c["head_dim"])
    w.add_value_length(c["head_dim"])
    w.add_rope_dimension_count(c["head_dim"])
    w.add_rope_freq_base(c["theta"])
    w.add_layer_norm_rms_eps(c["eps"])

    w.add_tokenizer_model("gpt2")
    w.add_tokenizer_pre("qwen2")
    w.add_token_list(tk.tokens)
    kinds = {**{t: gguf.TokenType.CONTROL for t in SPECIALS}, **{t: gguf.TokenType.USER_DEFINED for t in MARKS}}
    w.add_token_types([kinds.get(t, gguf.TokenType.NORMAL) for t in tk.tokens])
    w.add_token_merges([a + " " + b for a, b in tk.merges])
    w.add_eos_token_id(tk.ids["<|im_end|>"])
    w.add_eot_token_id(tk.ids["<|im_end|>"])
    w.add_pad_token_id(tk.ids["<|pad|>"])
    w.add_add_bos_token(False)
    w.add_chat_template((Path(__file__).parent / "template.jinja").read_text())

    def put(name, x, quantise=True):
        x = np.ascontiguousarray(x, dtype=np.float32)
        if quantise and kind != "f32":
            w.add_tensor(name, gguf.quants.quantize(x, types[kind]), raw_dtype=types[kind])
        else:
            w.add_tensor(name, x)

    put("token_embd.weight", sd["embed.weight"])          # also the output matrix
    put("output_norm.weight", sd["norm"], False)
    one = np.ones(c["dim"], dtype=np.float32)
    for i in range(c["layers"]):
        old = {k.split(".")[-1]: v for k, v in sd.items() if k.startswith(f"layers.{i}.")}
        put(f"blk.{i}.attn_norm.weight", one, False)
        put(f"blk.{i}.attn_q.weight", interleave(old["wq"], c["heads"]))
        put(f"blk.{i}.attn_k.weight", interleave(old["wk"], c["kv_heads"]))
        put(f"blk.{i}.attn_v.weight", old["wv"])
        put(f"blk.{i}.attn_output.weight", old["wo"])
        put(f"blk.{i}.ffn_norm.weight", one, False)
        put(f"blk.{i}.ffn_gate.weight", old["gate"])
        put(f"blk.{i}.ffn_up.weight", old["up"])
        put(f"blk.{i}.ffn_down.weight", old["down"])
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()
    print(target, os.path.getsize(target), "bytes")


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Largest difference between the log probabilities of PyTorch and of a server with the exported model (F32 file).

    python3 parity.py model.pt model-f32.gguf
"""
import random
import sys

import torch

import corpus
import evaluate as ev
from tokenizer import Tokenizer
from train import Model


@torch.no_grad()
def largest_difference(model, tk, samples=20):
    rng, worst = random.Random(4), 0.0
    for _ in range(samples):
        text = "".join(t for t, _ in corpus.render(corpus.dialogue(rng, 0.7)))
        ids = tk.encode(text)[: rng.randint(20, 400)]
        r = ev.post("/completion", {"prompt": ids, "n_predict": 1, "temperature": 0, "n_probs": 5, "cache_prompt": False})
        mine = model(torch.tensor([ids]), torch.arange(len(ids))[None])[0, -1].log_softmax(-1)
        for t in r["completion_probabilities"][0]["top_logprobs"]:
            worst = max(worst, abs(mine[t["id"]].item() - t["logprob"]))
    return worst


def main(checkpoint, gguf):
    torch.set_num_threads(1)
    tk = Tokenizer()
    model = Model(len(tk.tokens))
    model.load_state_dict(torch.load(checkpoint)["model"])
    p = ev.start(gguf)
    try:
        print("largest difference", largest_difference(model, tk))
    finally:
        p.terminate()
        p.wait()


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Trains the demo model from scratch on endless dialogues of corpus.py (CPU, FP32).

    . ./env.sh; python3 train.py --minutes 60

Matrices of the layers are trained with Muon (momentum, then orthogonalised by a
Newton-Schulz iteration), embeddings and norms with AdamW.  The learning rate is
held after a short warm-up and falls to zero over the last 85%; progress is measured in
wall-clock time.  Positions get random gaps between messages and lines, so that
the model meets distances up to the full context while its windows are short.
"""
import argparse
import math
import random
import time

import torch
import torch.nn.functional as F
from torch import nn

import corpus
from tokenizer import Tokenizer

CONFIG = dict(dim=192, layers=4, heads=4, kv_heads=2, head_dim=64, ffn=384,
              theta=1e6, eps=1e-5, context=8192)
OTHER = 0.05      # weight of the loss on tokens outside answers


# -------------------------------------------------------------------- model
def norm(x, eps):
    """RMSNorm without weights: the next matrix takes their place."""
    return x * torch.rsqrt(torch.linalg.vector_norm(x, dim=-1, keepdim=True).square() / x.shape[-1] + eps)


class Layer(nn.Module):
    def __init__(self, c):
        super().__init__()
        d, q, kv = c["dim"], c["heads"] * c["head_dim"], c["kv_heads"] * c["head_dim"]
        self.c = c
        shapes = dict(wq=(q, d), wk=(kv, d), wv=(kv, d), wo=(d, q),
                      gate=(c["ffn"], d), up=(c["ffn"], d), down=(d, c["ffn"]))
        for name, (rows, cols) in shapes.items():
            w = torch.zeros(rows, cols)
            if name not in ("wo", "down"):
                w.normal_(std=0.4 * cols ** -0.5)
            setattr(self, name, nn.Parameter(w))

    def forward(self, x, cos, sin, mask):
        c, (B, T, _) = self.c, x.shape
        H, K, D = c["heads"], c["kv_heads"], c["head_dim"]
        qkv = F.linear(norm(x, c["eps"]), torch.cat((self.wq * D ** -0.5, self.wk, self.wv)))
        qk, v = qkv.split(((H + K) * D, K * D), -1)
        # RoPE on the two halves of a head; export.py interleaves them for llama.cpp
        a, b = qk.view(B, T, H + K, D).chunk(2, -1)
        qk = torch.cat((a * cos - b * sin, a * sin + b * cos), -1)
        # the query heads of a group share a key head: fold the group into the rows
        q = qk[:, :, :H].view(B, T, K, H // K, D).permute(0, 2, 3, 1, 4).reshape(B * K, -1, D)
        k = qk[:, :, H:].permute(0, 2, 3, 1).reshape(B * K, D, T)
        v = v.view(B, T, K, D).transpose(1, 2).reshape(B * K, T, D)
        s = torch.baddbmm(mask.repeat(H // K, 1), q, k)
        y = torch.bmm(s.softmax(-1), v).view(B, K, H // K, T, D).permute(0, 3, 1, 2, 4).reshape(B, T, -1)
        x = x + F.linear(y, self.wo)
        g, u = F.linear(norm(x, c["eps"]), torch.cat((self.gate, self.up))).chunk(2, -1)
        return x + F.linear(F.silu(g) * u, self.down)


class Model(nn.Module):
    def __init__(self, vocab, c=CONFIG):
        super().__init__()
        self.c = c
        self.embed = nn.Embedding(vocab, c["dim"])
        self.layers = nn.ModuleList(Layer(c) for _ in range(c["layers"]))
        self.norm = nn.Parameter(torch.full((c["dim"],), 3.0))     # weight of the last norm
        half = c["head_dim"] // 2
        self.freq = c["theta"] ** (-torch.arange(half).double() / half)
        nn.init.normal_(self.embed.weight, std=0.03)

    def forward(self, ids, pos):
        angle = pos.double()[..., None] * self.freq
        cos, sin = angle.cos().float()[:, :, None], angle.sin().float()[:, :, None]
        T = ids.shape[1]
        mask = torch.full((T, T), -1e9).triu(1)
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x, cos, sin, mask)
        return F.linear(norm(x, self.c["eps"]) * self.norm, self.embed.weight)


@torch.no_grad()
def seed_copying(model):
    """Starts layers 0 and 1 near the circuit that copies.  The heads of layer 0 look one to
    four tokens back and note what they see; heads of layer 1 look for a token before which
    stands what stands here, the longer the better, and write it out.  Training refines
    this; to find it by chance would take several times the tokens."""
    c, l0, l1 = model.c, model.layers[0], model.layers[1]
    D, half, d = c["head_dim"], c["head_dim"] // 2, c["dim"]
    e = model.embed.weight
    e[:, 0] = 0.15                                   # a constant, the same for every token
    const = norm(e, c["eps"])[:, 0].mean().item()
    n, force = 8, 8.0                                # fast pairs of the rotation, logit of each
    f = model.freq[:n].float()
    size = math.sqrt(force * math.sqrt(D)) / const
    l0.wq *= 0.1
    l0.wk *= 0.1
    for kv in range(2):
        l0.wk[kv * D: kv * D + n, 0] = size
    for h, back in enumerate((1, 2, 3, 4)):
        l0.wq[h * D: h * D + n, 0] = size * torch.cos(back * f)
        l0.wq[h * D + half: h * D + half + n, 0] = -size * torch.sin(back * f)
    # five subspaces: numbers that name a token, and copies of the names of the last four
    m = (d - 1) // 5
    basis = torch.zeros(d, d - 1)
    basis[1:] = torch.linalg.qr(torch.randn(d - 1, d - 1))[0]
    name, one, two, three, four = basis[:, : 5 * m].split(m, 1)
    for kv in range(2):
        l0.wv[kv * D: kv * D + m] = name.t()
    for h, place in enumerate((one, two, three, four)):
        l0.wo[:, h * D: h * D + m] = 0.08 * place
    # layer 1: match the names over the slow pairs, which hardly turn with distance
    slow = [i for i in range(half) if model.freq[i] < 2e-3]
    rows = torch.tensor(slow + [i + half for i in slow])
    A, B, C, E = (torch.linalg.qr(torch.randn(max(m, len(rows)), max(m, len(rows))))[0][: len(rows), :m] for _ in range(4))
    g = 1.5
    l1.wq[: 3 * D] *= 0.1
    l1.wk[:] *= 0.1
    l1.wk[rows] = g * (A @ one.t() + B @ two.t() + C @ three.t() + E @ four.t())
    l1.wk[rows + D] = g * (C @ three.t() + E @ four.t())
    l1.wq[rows] = g * (2 * A @ name.t() + B @ one.t() + C @ two.t() + E @ three.t())
    l1.wq[rows + D] = g * (2 * A @ name.t() + B @ one.t())
    l1.wq[rows + 2 * D] = g * (C @ two.t() + E @ three.t())
    for kv in range(2):
        l1.wv[kv * D: kv * D + m] = name.t()
    for h in range(3):
        l1.wo[:, h * D: h * D + m] = (1.2, 0.3, 0.3)[h] * name


# --------------------------------------------------------------------- data
def encode(tk, d, rng, context):
    """ids, answer flags and positions of one dialogue."""
    ids, flag, pos, p = [], [], [], 0
    room = context - 64
    gaps = rng.random() < 0.5
    newline = {i for i, t in enumerate(tk.tokens) if t.endswith("Ċ")}
    for text, answer in corpus.render(d):
        new = tk.encode(text)
        for j, t in enumerate(new):
            ids.append(t)
            flag.append(answer)
            pos.append(p)
            p += 1
            # a gap may follow a line of the context, never one inside an answer
            if gaps and not answer and t in newline and j > 2 and rng.random() < 0.3:
                left = room - p - 1500
                if left > 1:
                    p += int(math.exp(rng.random() * math.log(left)))
    return ids, flag, pos


def batches(tk, rng, progress, tokens, long):
    """Endless batches of about `tokens` tokens of dialogues of like length."""
    context = CONFIG["context"]
    while True:
        p = progress()
        level = min(1.0, max(0.0, (p - 0.02) / 0.45))
        pool = []
        for _ in range(400):
            lv = level * rng.random() ** 0.5
            extra = {}
            if p > 0.5 and rng.random() < long:      # longer contexts in the second half
                most = 1.0 if p < 0.8 or rng.random() < 0.5 else 3.0
                extra = dict(n_facts=int(rng.randint(20, 60) * most), n_filler=int(rng.randint(0, 40) * most),
                             turns=rng.randint(6, 12))
            d = encode(tk, corpus.dialogue(rng, lv, **extra), rng, context)
            if len(d[0]) <= (1024 if p < 0.5 else 2048 if p < 0.8 else 4096):
                pool.append(d)
        pool.sort(key=lambda d: len(d[0]))
        out, cur = [], []
        for d in pool:
            if cur and (len(cur) + 1) * len(d[0]) > tokens:
                out.append(cur)
                cur = []
            cur.append(d)
        rng.shuffle(out)
        for rows in out:
            T = max(len(r[0]) for r in rows)
            ids, pos = torch.zeros(len(rows), T, dtype=torch.long), torch.zeros(len(rows), T, dtype=torch.long)
            w = torch.zeros(len(rows), T)
            for i, (a, f, q) in enumerate(rows):
                n = len(a)
                ids[i, :n], pos[i, :n] = torch.tensor(a), torch.tensor(q)
                w[i, :n] = torch.tensor([1.0 if x else OTHER for x in f])
            yield ids, pos, w, sum(len(r[0]) for r in rows)


# ---------------------------------------------------------------- optimiser
def orthogonal(g):
    """Newton-Schulz: pushes the singular values of a stack of matrices towards 1."""
    x = g.transpose(1, 2) if g.shape[1] > g.shape[2] else g
    x = x / (x.flatten(1).norm(dim=1)[:, None, None] + 1e-7)
    for _ in range(5):
        s = x @ x.transpose(1, 2)
        x = 3.4445 * x + (-4.7750 * s + 2.0315 * (s @ s)) @ x
    return x.transpose(1, 2) if g.shape[1] > g.shape[2] else x


class Muon:
    def __init__(self, params, momentum=0.95, decay=0.01):
        self.groups = {}
        for p in params:
            self.groups.setdefault(tuple(p.shape), []).append(p)
        self.momentum, self.decay = momentum, decay
        self.buf = {s: torch.zeros(len(ps), *s) for s, ps in self.groups.items()}

    @torch.no_grad()
    def step(self, lr):
        for shape, ps in self.groups.items():
            g, buf = torch.stack([p.grad for p in ps]), self.buf[shape]
            buf.lerp_(g, 1 - self.momentum)
            u = orthogonal(g.lerp(buf, self.momentum)) * max(1.0, shape[0] / shape[1]) ** 0.5
            for p, v in zip(ps, u):
                p.mul_(1 - lr * self.decay).add_(v, alpha=-lr)


# --------------------------------------------------------------------- main
def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--minutes", type=float, default=60)
    ap.add_argument("--tokens", type=int, default=3072, help="tokens of a batch")
    ap.add_argument("--muon-lr", type=float, default=0.01)
    ap.add_argument("--adam-lr", type=float, default=0.002)
    ap.add_argument("--long", type=float, default=0.03, help="share of long dialogues in the second half")
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--start", help="checkpoint to go on from")
    ap.add_argument("--at", type=float, default=0.0, help="progress to start from")
    ap.add_argument("--out", default="model.pt")
    a = ap.parse_args()
    torch.manual_seed(a.seed)
    torch.set_flush_denormal(True)
    tk, rng = Tokenizer(), random.Random(a.seed)
    model = Model(len(tk.tokens))
    seed_copying(model)
    done = 0
    if a.start:
        ck = torch.load(a.start)
        model.load_state_dict(ck["model"])
        done = ck["tokens"]
    print(sum(p.numel() for p in model.parameters()), "parameters", flush=True)
    hidden = [p for n, p in model.named_parameters() if p.dim() == 2 and "embed" not in n]
    muon = Muon(hidden)
    adam = torch.optim.AdamW([p for p in model.parameters() if not any(p is h for h in hidden)],
                             lr=a.adam_lr, betas=(0.9, 0.98), weight_decay=0.0)
    begin = time.time()
    progress = lambda: a.at + (1 - a.at) * (time.time() - begin) / (60 * a.minutes)
    step, saved, shown, logged = 0, time.time(), time.time(), []
    for ids, pos, w, n in batches(tk, rng, progress, a.tokens, a.long):
        p = progress()
        if p >= 1:
            break
        scale = min(1.0, (step + 1) / 60) * min(1.0, (1 - p) / 0.85)
        logits = model(ids, pos)[:, :-1]
        wt = w[:, 1:]
        loss = F.cross_entropy(logits.reshape(-1, logits.shape[-1]), ids[:, 1:].reshape(-1), reduction="none")
        ans = (wt == 1.0).reshape(-1)
        total = (loss * wt.reshape(-1)).sum() / wt.sum()
        total.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for gr in adam.param_groups:
            gr["lr"] = a.adam_lr * scale
        muon.step(a.muon_lr * scale)
        adam.step()
        model.zero_grad(set_to_none=True)
        step, done = step + 1, done + n
        with torch.no_grad():
            hit = (logits.argmax(-1) == ids[:, 1:]).reshape(-1)[ans].float().mean()
            logged.append((loss[ans].mean().item(), hit.item(), n))
        if time.time() - shown > 20:
            k = len(logged)
            print(f"{(time.time()-begin)/60:6.1f} min step {step} progress {p:.3f} tokens {done/1e6:.2f}M "
                  f"answer loss {sum(x[0] for x in logged)/k:.4f} hit {sum(x[1] for x in logged)/k:.4f} "
                  f"{sum(x[2] for x in logged)/(time.time()-shown):.0f} tok/s T {ids.shape[1]}", flush=True)
            shown, logged = time.time(), []
        if time.time() - saved > 90:
            torch.save({"model": model.state_dict(), "tokens": done}, a.out)
            saved = time.time()
    torch.save({"model": model.state_dict(), "tokens": done}, a.out)
    print("done", step, "steps", done, "tokens", (time.time() - begin) / 60, "min")


if __name__ == "__main__":
    main()

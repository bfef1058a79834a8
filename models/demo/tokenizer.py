"""Byte-level BPE for the demo model, equal to llama.cpp's "gpt2" model with the
"qwen2" pre-tokenizer.

The merges are trained in three groups, so that a random word is cut the same way
wherever it stands (after a space, a quote, a slash): first merges inside runs of
letters, then inside runs of punctuation, last a space before a common word of the
templates.  No merge joins a space or a sign to a content word.
"""
import json
import random
import re
from collections import Counter
from pathlib import Path

import corpus

FILE = Path(__file__).parent / "tokenizer.json"

SPECIALS = ["<|im_start|>", "<|im_end|>", "<|pad|>"]       # control tokens
MARKS = ["<tool_call>", "</tool_call>"]                    # user-defined: shown as text
N_LETTER, N_SIGN, N_SPACE = 960, 56, 139                   # merges of the three groups

# The "qwen2" pre-tokenizer; [^\W\d_] stands for \p{L} and \d for \p{N}.
PRE = re.compile(r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
                 r"|(?:[^\r\n\w]|_)?[^\W\d_]+|\d| ?(?:[^\s\w]|_)+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
SPLIT = re.compile("(" + "|".join(map(re.escape, SPECIALS + MARKS)) + ")")


def byte_chars():
    """The printable character GPT-2's tokenizer writes for each byte."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    table, extra = {}, 256
    for b in range(256):
        if b in plain:
            table[b] = chr(b)
        else:
            table[b], extra = chr(extra), extra + 1
    return table

BYTES = byte_chars()

def to_chars(text):
    return "".join(BYTES[b] for b in text.encode("utf-8"))


def learn(words, n):
    """Plain BPE training: n merges over a Counter of words (tuples of symbols)."""
    words, merges = {tuple(w): c for w, c in words.items()}, []
    while len(merges) < n:
        pairs = Counter()
        for w, c in words.items():
            for pair in zip(w, w[1:]):
                pairs[pair] += c
        if not pairs:
            break
        best = max(pairs, key=lambda p: (pairs[p], p))
        merges.append(best)
        a, b = best
        new = {}
        for w, c in words.items():
            if a in w:
                out, i = [], 0
                while i < len(w):
                    if i + 1 < len(w) and w[i] == a and w[i + 1] == b:
                        out.append(a + b)
                        i += 2
                    else:
                        out.append(w[i])
                        i += 1
                w = tuple(out)
            new[w] = new.get(w, 0) + c
        words = new
    return merges


def train(seed=7, samples=4000):
    rng, letters, signs, spaced = random.Random(seed), Counter(), Counter(), Counter()
    for _ in range(samples):
        for text, _ in corpus.render(corpus.dialogue(rng, 0.5)):
            for piece in SPLIT.split(text):
                for w in PRE.findall(piece) if piece not in SPECIALS + MARKS else ():
                    if any(c.isalpha() for c in w):
                        letters[w if w[0].isalpha() else w[1:]] += 1
                        if w[0] == " ":
                            spaced[w] += 1
                    else:
                        signs[to_chars(w)] += 1
    # content words come in evenly, so that each is one token or two
    for w in corpus.NOUNS + corpus.ITEMS + corpus.ADJS + corpus.COLORS + corpus.PLACES + corpus.ATTRS:
        letters[w] += 300
    for w in corpus.HEADS + corpus.TAILS + corpus.SYLS:
        letters[w] += 400
    letters = Counter({w: max(c, 300) for w, c in letters.items() if c >= 60})
    merges = learn(letters, N_LETTER)
    content = set(corpus.NOUNS + corpus.ITEMS + corpus.ADJS + corpus.COLORS + corpus.TAILS + corpus.SYLS)
    merges += learn(signs, N_SIGN)
    whole = {a + b for a, b in merges} | {"a"}
    common = [w for w, c in spaced.most_common() if w[1:] in whole and w[1:] not in content
              and not any(w[1:].startswith(h) for h in corpus.HEADS)]
    merges += [(BYTES[32], w[1:]) for w in common[:N_SPACE]]
    return merges


class Tokenizer:
    def __init__(self, file=FILE):
        self.merges = [tuple(m) for m in json.loads(file.read_text())["merges"]]
        self.tokens = list(BYTES.values())
        for a, b in self.merges:
            if a + b not in self.tokens:
                self.tokens.append(a + b)
        self.tokens += SPECIALS + MARKS
        self.ids = {t: i for i, t in enumerate(self.tokens)}
        self.rank = {m: i for i, m in enumerate(self.merges)}
        self.cache = {}
        self.bytes = {c: b for b, c in BYTES.items()}

    def _word(self, w):
        if w in self.cache:
            return self.cache[w]
        parts = list(to_chars(w))
        while len(parts) > 1:
            i = min(range(len(parts) - 1), key=lambda i: self.rank.get((parts[i], parts[i + 1]), 1 << 30))
            if (parts[i], parts[i + 1]) not in self.rank:
                break
            parts[i:i + 2] = [parts[i] + parts[i + 1]]
        ids = [self.ids[p] for p in parts]
        if len(self.cache) < 200000:
            self.cache[w] = ids
        return ids

    def encode(self, text):
        out = []
        for piece in SPLIT.split(text):
            if piece in self.ids and piece.startswith("<") and len(piece) > 2:
                out.append(self.ids[piece])
            else:
                for w in PRE.findall(piece):
                    out += self._word(w)
        return out

    def decode(self, ids):
        text = "".join(self.tokens[i] for i in ids)
        return b"".join(bytes([self.bytes[c]]) if c in self.bytes else c.encode() for c in text).decode("utf-8", "replace")


def check(tk, samples=200):
    """Every text must come back from its tokens. Gives the mean number of characters a token."""
    rng, n_tokens, n_chars = random.Random(3), 0, 0
    for _ in range(samples):
        text = "".join(t for t, _ in corpus.render(corpus.dialogue(rng, 0.5)))
        ids = tk.encode(text)
        assert tk.decode(ids) == text
        n_tokens, n_chars = n_tokens + len(ids), n_chars + len(text)
    return n_chars / n_tokens


if __name__ == "__main__":
    FILE.write_text(json.dumps({"merges": train()}, indent=0))
    tokenizer = Tokenizer()
    print(f"{len(tokenizer.tokens)} tokens, {check(tokenizer):.2f} characters a token")

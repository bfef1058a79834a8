"""Checks a GGUF of the demo model through a server, greedy, on fresh dialogues.

    python3 evaluate.py coppice-demo.gguf [--dialogues 300] [--long 5]

SERVER is the command that starts a server: "coppice serve" (the default) or "llama-server".

1. the server's tokens and rendered template equal those of training;
2. every assistant turn of held-out dialogues, with the true history before it,
   is compared with the one right answer (text, or calls with their arguments);
3. retrieval from long contexts; 4. streamed tool calls.
"""
import argparse
import json
import os
import random
import shlex
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import defaultdict

import corpus
from tokenizer import Tokenizer

SERVER = shlex.split(os.environ.get("SERVER", "coppice serve"))


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


PORT = free_port()


def post(path, body):
    req = urllib.request.Request(f"http://127.0.0.1:{PORT}{path}", json.dumps(body).encode(),
                                 {"Content-Type": "application/json"})
    with urllib.request.urlopen(req, timeout=300) as r:
        return json.load(r) if not body.get("stream") else r.read().decode()


def start(model, threads=1):
    env = {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "LD_LIBRARY_PATH")}
    log = tempfile.TemporaryFile()
    p = subprocess.Popen([*SERVER, "-m", model, "--port", str(PORT), "-c", "9216", "-np", "1", "-t", str(threads)],
                         stdout=log, stderr=log, env=env)
    for _ in range(100):
        if p.poll() is not None:
            break
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{PORT}/health", timeout=2)
            return p
        except OSError:
            time.sleep(0.2)
    p.kill()
    p.wait()
    log.seek(0)
    sys.stderr.write(log.read().decode(errors="replace"))
    raise SystemExit("the server did not start")


def openai_tools(tools):
    return [{"type": "function", "function": {"name": t["name"], "description": "", "parameters": {
        "type": "object", "properties": {k: {"type": v} for k, v in t["parameters"].items()},
        "required": list(t["parameters"])}}} for t in tools]


def openai_messages(messages):
    out = []
    for m in messages:
        n = {"role": m["role"], "content": m["content"]}
        if m.get("tool_calls"):
            n["tool_calls"] = [{"id": f"c{len(out)}{i}", "type": "function", "function": {
                "name": c["name"], "arguments": json.dumps(c["arguments"])}} for i, c in enumerate(m["tool_calls"])]
        if m["role"] == "tool":
            n["tool_call_id"] = "c0"
        out.append(n)
    return out


def request(tools, messages, **more):
    body = {"messages": openai_messages(messages), "temperature": 0, "max_tokens": 200, "cache_prompt": True, **more}
    if tools:
        body.update(tools=openai_tools(tools), parallel_tool_calls=True)
    return body


def shown(msg):
    """One comparable form of a right or given answer."""
    if msg.get("tool_calls"):
        calls = [c.get("function", c) for c in msg["tool_calls"]]
        return [[c["name"], json.loads(c["arguments"]) if isinstance(c["arguments"], str) else c["arguments"]] for c in calls]
    return msg.get("content") or ""


def ask(tools, messages):
    """(answer, tokens of the prompt, mean and least margin of the first token over the second)."""
    r = post("/v1/chat/completions", request(tools, messages, logprobs=True, top_logprobs=2))
    c = r["choices"][0]
    margins = []
    for t in (c.get("logprobs") or {}).get("content") or []:
        top = sorted((2.718281828 ** x["logprob"] for x in t["top_logprobs"]), reverse=True)
        margins.append(top[0] - (top[1] if len(top) > 1 else 0))
    try:
        got = shown(c["message"])
    except ValueError:
        got = "bad JSON: " + json.dumps(c["message"])
    return got, r["usage"]["prompt_tokens"], sum(margins) / max(1, len(margins)), min(margins, default=0)


def check_texts(tk, n=300):
    """The number of dialogues whose tokens or template differ."""
    rng, bad = random.Random(99), [0, 0]
    for i in range(n):
        d = corpus.dialogue(rng, rng.random())
        text = "".join(t for t, _ in corpus.render(d))
        if tk.encode(text) != post("/tokenize", {"content": text, "parse_special": True, "add_special": True})["tokens"]:
            bad[0] += 1
        if i < 100:
            last = max(j for j, m in enumerate(d["messages"]) if m["role"] == "assistant")
            body = {"messages": openai_messages(d["messages"][:last])}
            if d["tools"]:
                body["tools"] = openai_tools(d["tools"])
            want = "".join(t for t, _ in corpus.render({"tools": d["tools"], "messages": d["messages"][:last]}))
            if post("/apply-template", body)["prompt"] != want + "<|im_start|>assistant\n":
                bad[1] += 1
    odd = ["I'll it's WE'RE  two   spaces\n\n\ttab 3.14 (x+y)*2 == {a: [1,2]}", "café – naïve … 東京 😀", "a_b__c-d//e", "\r\n \n x"]
    for text in odd:
        if tk.encode(text) != post("/tokenize", {"content": text, "parse_special": True})["tokens"]:
            print("odd text differs:", repr(text))
    return bad


class Table:
    def __init__(self):
        self.rows = defaultdict(lambda: [0, 0, 0.0, 0.0])
        self.wrong = []

    def add(self, key, want, got, margin, least, about=""):
        r = self.rows[key]
        r[0] += 1
        r[1] += want == got
        r[2] += margin
        r[3] += least
        if want != got:
            self.wrong.append((key, about, want, got))

    def show(self, title):
        print(f"\n{title}\n| class | turns | exact | mean margin | mean least margin |\n|---|---|---|---|---|")
        for k in sorted(self.rows):
            n, ok, m, l = self.rows[k]
            print(f"| {k} | {n} | {100*ok/n:.1f}% | {m/n:.3f} | {l/n:.3f} |")


def dialogues(n, level, seed):
    rng, t = random.Random(seed), Table()
    for _ in range(n):
        d = corpus.dialogue(rng, level)
        for i, m in enumerate(d["messages"]):
            if m["role"] == "assistant":
                got, _, margin, least = ask(d["tools"], d["messages"][:i])
                for key in (m["task"], "~ all"):
                    t.add(key, shown(m), got, margin, least, d["messages"][i - 1]["content"])
    t.show(f"level {level}: {n} dialogues")
    return t


def long_context(tk, sizes, n, seed=5, kinds=("few facts", "many facts")):
    rng, t = random.Random(seed), Table()
    for size in sizes:
        for kind in kinds:
            for i in range(n):
                share = 0.1 if kind == "few facts" else 0.8
                lines, facts = [], []
                used = 40
                while used < size - 60:
                    if rng.random() < share:
                        f = corpus.attr_fact(rng, corpus.name(rng), corpus.pick(rng, corpus.ATTRS), corpus.value(rng)) \
                            if rng.random() < 0.7 else corpus.set_fact(rng, corpus.setting(rng), corpus.value(rng), ": ")
                        if any(f.key == g.key for g in facts):
                            continue
                        facts.append(f)
                        line = f.text
                    else:
                        line = corpus.filler(rng)
                    lines.append(line)
                    used += len(tk.encode(line + "\n"))
                if not facts:
                    continue
                for j in range(5):                       # four known, one unknown, over one cached prefix
                    f, unknown = corpus.pick(rng, facts), j == 4
                    q = corpus.unknown_ask(rng, facts) if unknown else corpus.pick(rng, f.asks)
                    want = corpus.UNKNOWN if unknown else f.answer
                    got, used, margin, least = ask([], [{"role": "system", "content": "\n".join(lines)},
                                                        {"role": "user", "content": q}])
                    t.add(f"{size:5d} tokens, {kind}, " + ("unknown" if unknown else "known"), want, got, margin, least, q)
    t.show("long contexts")
    return t


def streaming(n=20, seed=11):
    """Streamed tool calls, put together, equal the calls of the plain answer."""
    rng, same, total = random.Random(seed), 0, 0
    while total < n:
        d = corpus.dialogue(rng, 0.5)
        for i, m in enumerate(d["messages"]):
            if m.get("tool_calls") and total < n:
                plain = ask(d["tools"], d["messages"][:i])[0]
                calls = {}
                for line in post("/v1/chat/completions", request(d["tools"], d["messages"][:i], stream=True)).splitlines():
                    if line.startswith("data: {"):
                        for c in (json.loads(line[6:])["choices"] or [{"delta": {}}])[0]["delta"].get("tool_calls") or []:
                            e = calls.setdefault(c["index"], {"name": "", "arguments": ""})
                            e["name"] += c["function"].get("name") or ""
                            e["arguments"] += c["function"].get("arguments") or ""
                total += 1
                try:
                    same += shown({"tool_calls": list(calls.values())} if calls else {"content": plain}) == plain
                except ValueError:
                    pass
    print(f"\nstreamed calls equal plain calls: {same} of {total}")


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("model")
    ap.add_argument("--dialogues", type=int, default=300)
    ap.add_argument("--long", type=int, default=5, help="contexts of each size and kind, five questions each")
    ap.add_argument("--sizes", default="256,512,1024,2048,4096,8000")
    ap.add_argument("--threads", type=int, default=1)
    ap.add_argument("--wrong", type=int, default=30, help="wrong answers shown")
    a = ap.parse_args()
    p = start(a.model, a.threads)
    try:
        tk = Tokenizer()
        print("dialogues whose tokens, template differ:", check_texts(tk))
        tables = [dialogues(a.dialogues // 3, lv, 1000 + i) for i, lv in enumerate((0.2, 0.6, 1.0))] if a.dialogues else []
        if a.long:
            tables.append(long_context(tk, [int(x) for x in a.sizes.split(",")], a.long))
        streaming()
        overall = Table()
        for t in tables[: 3 if a.dialogues else 0]:
            for k, row in t.rows.items():
                overall.rows[k] = [x + y for x, y in zip(overall.rows[k], row)]
        overall.show("all dialogues")
        wrong = [w for t in tables for w in t.wrong if w[0] != "~ all"]
        print("\nwrong answers:", len(wrong))
        for key, about, want, got in wrong[:: max(1, len(wrong) // max(1, a.wrong))]:
            print(f"- [{key}] {about[-120:]!r}\n    want {want!r}\n    got  {got!r}")
    finally:
        p.terminate()
        p.wait()


if __name__ == "__main__":
    main()

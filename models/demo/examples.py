"""Prints nine fixed requests and the model's exact greedy answers.

    python3 examples.py coppice-demo.gguf
"""
import json
import sys

import evaluate as ev
from corpus import TOOLS

FACTS = ("Answer briefly.\nThe code of Zorbin is 48213. The code of Velmin is KX-77. The room of Zorbin is 12.\n"
         "max_depth: 64\nmax_width: 9\nsail_limit: KTR-906\nIn the cellar: lamps 14, ropes 250.")
AGENT = "You are a careful agent. Use the facts and the tools."
FILES = ("list_files", "read_file", "search")


def call(name, **args):
    return {"role": "assistant", "content": "", "tool_calls": [{"name": name, "arguments": args}]}


# (title, names of tools, messages as (role, text) or as a dict)
EXAMPLES = [
    ("who", (), [("user", "Who are you?")]),
    ("fact", (), [("system", FACTS), ("user", "What is the code of Velmin?")]),
    ("setting", (), [("system", FACTS), ("user", "What is sail_limit set to?")]),
    ("unknown", (), [("system", FACTS), ("user", "What is the code of Tirgan?")]),
    ("told, then asked", (), [("user", "Remember: The key of Tavley is falcon 9."), ("assistant", "OK, noted."),
                              ("user", "Tell me the key of Tavley.")]),
    ("tool call", ("get_weather", "send_message", "read_file"), [("system", AGENT), ("user", "Send a message to Lodwen: bring 3 ropes.")]),
    ("chain, second call", FILES, [("system", AGENT), ("user", "Read the file about budget in the folder forest."),
                                   call("list_files", path="forest"), ("tool", "draft.md\nbudget.txt\nsignal.csv")]),
    ("chain, answer", FILES, [("system", AGENT), ("user", "Read the file about budget in the folder forest."),
                              call("list_files", path="forest"), ("tool", "draft.md\nbudget.txt\nsignal.csv"),
                              call("read_file", path="forest/budget.txt"), ("tool", "rope 12 candle 7 total 19")]),
    ("parallel calls", ("get_weather", "get_time"), [("system", AGENT), ("user", "What is the weather in Tavley and Oslo?")]),
]


def build(tools, messages):
    return ([{"name": t, "parameters": TOOLS[t][0]} for t in tools],
            [m if isinstance(m, dict) else {"role": m[0], "content": m[1]} for m in messages])


if __name__ == "__main__":
    p = ev.start(sys.argv[1])
    try:
        for title, tools, messages in EXAMPLES:
            got, n, mean, least = ev.ask(*build(tools, messages))
            print(f"{title}: {messages[-1][1]!r}\n    -> {json.dumps(got)}   (prompt {n} tokens, least margin {least:.3f})")
    finally:
        p.terminate()
        p.wait()

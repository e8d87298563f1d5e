#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes recorded_bpe.h: texts, and the merges that BpeTrainer of Hugging Face `tokenizers` learns from them.

    python3 record_bpe.py [tinyshakespeare.txt] >recorded_bpe.h

With the text of tinyshakespeare, the FNV-1a hash of its merges is recorded too.
"""
import json
import random
import sys

import tokenizers
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

CASES = [
    (300, ["low low low low low lower lower newest newest newest newest newest newest widest widest widest"]),
    (400, ["It's what we'll do; they're 12345 o'clock, isn't IT?  Two  spaces\n\n\tand a tab\r\n", "It's IT's turn: it's 123."]),
    (600, ["Stra\u00dfe na\u00efve caf\u00e9 \u4e16\u754c \u4f60\u597d\u4e16\u754c \U0001f680\U0001f680 caf\u00e9s Stra\u00dfen \u2002x\u00a0y"]),
    (257, ["no merge at all"]),
    (1000, ["", "a", " ", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "aaaaaaa aaaa aaa"]),
]


def drawn(seed):
    """Strings of few letters have ties, overlaps, and tokens that two merges make."""
    r = random.Random(seed)
    letters = ["ab", "abc", "ab \n", "a'st1 ", "xy.,!1 "][seed % 5]
    return r.choice([270, 300, 1000]), ["".join(r.choice(letters) for _ in range(150)) for _ in range(1 + seed % 3)]


def learn(texts, vocab):
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.train_from_iterator(texts, trainers.BpeTrainer(
        vocab_size=vocab, special_tokens=["<|endoftext|>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    merges = [" ".join(m) for m in json.loads(t.to_str())["model"]["merges"]]
    return "".join(m + "\n" for m in merges), t.get_vocab_size()


def quoted(text):
    return '"' + "".join(chr(b) if 32 <= b < 127 and chr(b) not in '"\\?' else f"\\{b:03o}" for b in text.encode()) + '"'


def wrapped(text):
    lines = [text[i:i + 60] for i in range(0, len(text), 60)] or [""]
    return "\n\t\t".join(map(quoted, lines))


print("// SPDX-License-Identifier: Apache-2.0")
print(f"// Written by tests/models/record_bpe.py: merges of BpeTrainer of tokenizers {tokenizers.__version__}.")
print("static const struct learned {\n\tint vocab, ids, count;\n\tconst char *text[6], *merges;\n} learned[] = {")
for vocab, texts in CASES + [drawn(seed) for seed in range(20)]:
    merges, ids = learn(texts, vocab)
    print(f"\t{{ {vocab}, {ids}, {len(texts)}, {{ " + ",\n\t\t".join(map(wrapped, texts)) + f" }},\n\t\t{wrapped(merges)} }},")
print("};")
if len(sys.argv) > 1:
    merges, ids = learn([open(sys.argv[1], newline="").read()], 4096)
    h = 0xcbf29ce484222325
    for b in merges.encode():
        h = (h ^ b) * 0x100000001b3 & (1 << 64) - 1
    print(f"// tinyshakespeare, 4096 ids: FNV-1a of the merges, each with a line end\n#define SHAKESPEARE_MERGES 0x{h:016x}u")

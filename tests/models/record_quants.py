#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes recorded_quants.h: the bytes that the package `gguf` quantizes numbers to.

    python3 record_quants.py >recorded_quants.h
"""
import importlib.metadata

import numpy as np
from gguf import GGMLQuantizationType as Q
from gguf.quants import quantize

WRITTEN = Q.F32, Q.F16, Q.BF16, Q.Q4_0, Q.Q4_1, Q.Q5_0, Q.Q5_1, Q.Q8_0


def listed(values, form=str):
    return ", ".join(map(form, values))


def main():
    rng = np.random.default_rng(11)
    blocks = [
        rng.normal(size=32),
        rng.uniform(0, 1, 32),
        np.zeros(32),
        np.repeat([[-2.0, 2.0]], 16, axis=0).reshape(-1),  # equal largest moduli
        np.arange(32) / 2,  # halves are rounded
        rng.normal(size=32) * 1e-4,  # scales are subnormal in f16
        rng.normal(size=32) * 1e3,
        np.full(32, 0.1),
    ]
    x = np.array(blocks, np.float32)
    print("// SPDX-License-Identifier: Apache-2.0")
    print("// Written by record_quants.py: numbers, and the bytes of them in each format.")
    print(f"// gguf {importlib.metadata.version('gguf')}, numpy {np.__version__}")
    print("// clang-format off")
    print(f"static const float recorded_numbers[{x.size}] = {{ {listed(x.reshape(-1), lambda v: float(v).hex() + 'f')} }};")
    print("static const struct recorded_quant {\n\tenum yoke_quant format;\n\tconst char *name;\n\tint bytes;"
          "\n\tunsigned char byte[1024];\n} recorded_quants[] = {")
    for q in WRITTEN:
        b = quantize(x, q).view(np.uint8).reshape(-1)
        print(f"{{ YOKE_QUANT_{q.name}, \"{q.name}\", {b.size}, {{ {listed(b)} }} }},")
    print("};")


main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes recorded_blocks.h: quantized blocks of GGUF files and the values that the package `gguf` gives for them.

    python3 record_blocks.py >recorded_blocks.h
"""
import importlib.metadata

import numpy as np
from gguf import GGML_QUANT_SIZES
from gguf import GGMLQuantizationType as Q
from gguf.quants import dequantize

# Bytes at which a block has f16 scales, which random bytes would make infinite.
SCALES = {
    Q.Q4_0: [0], Q.Q4_1: [0, 2], Q.Q5_0: [0], Q.Q5_1: [0, 2], Q.Q8_0: [0], Q.Q2_K: [80, 82], Q.Q3_K: [108], Q.Q4_K: [0, 2],
    Q.Q5_K: [0, 2], Q.Q6_K: [208], Q.IQ4_NL: [0], Q.IQ4_XS: [0], Q.MXFP4: [],
}


def main():
    rng = np.random.default_rng(7)
    print("// SPDX-License-Identifier: Apache-2.0")
    print("// Written by record_blocks.py: quantized blocks, and their values.")
    print(f"// gguf {importlib.metadata.version('gguf')}")
    print("// clang-format off")
    print("static const struct recorded_block {\n\tenum yk_gguf_format format;\n\tint elements;\n\tunsigned char bytes[256];"
          "\n\tfloat values[256];\n} recorded_blocks[] = {")
    for q, scales in SCALES.items():
        elements, size = GGML_QUANT_SIZES[q]
        raw = rng.integers(0, 256, size, dtype=np.uint8)
        for at in scales:
            raw[at:at + 2] = np.frombuffer(np.float16(rng.normal()).tobytes(), np.uint8)
        if q == Q.MXFP4:
            raw[0] = 125
        values = dequantize(raw.reshape(1, -1), q).reshape(-1)
        print(f"{{ YK_GGUF_{q.name}, {elements}, {{ {', '.join(map(str, raw))} }},\n{{ {', '.join(f'{v:.9g}' for v in values)} }} }},")
    print("};")


if __name__ == "__main__":
    main()

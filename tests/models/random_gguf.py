#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a llama of random quantized weights as a GGUF file, with nothing but Python's own library.

    random_gguf.py FILE FORMAT CONTEXT WIDTH LAYERS HEADS HIDDEN VOCAB

FORMAT is q4_k, q6_k, q8_0 or q4_0. Matrices repeat one block of random
rows, so that several gigabytes are written in seconds; vectors of norms are 1. The tokenizer has
the pieces of bytes and invented words.
"""
import random
import struct
import sys

STRING, ARRAY, UINT32, INT32, FLOAT32 = 8, 9, 4, 5, 6
ALIGNMENT = 32
F32 = 0


def q4_k(source):
    """One block: f16 scale and minimum, 12 bytes of 6-bit scales, 128 bytes of 4-bit numbers."""
    return struct.pack('<ee', 2e-4, 1e-3) + source.randbytes(140)


def q6_k(source):
    """One block: 192 bytes of 6-bit numbers, 16 signed scales, f16 scale."""
    scales = struct.pack('16b', *(source.randint(-40, 40) for _ in range(16)))
    return source.randbytes(192) + scales + struct.pack('<e', 2e-5)


def q8_0(source):
    return struct.pack('<e', 2e-4) + source.randbytes(32)


def q4_0(source):
    return struct.pack('<e', 3e-3) + source.randbytes(16)


# name: type number of GGUF, elements of a block, bytes of a block, the function that makes one
FORMATS = {
    'q4_k': (12, 256, 144, q4_k),
    'q6_k': (14, 256, 210, q6_k),
    'q8_0': (8, 32, 34, q8_0),
    'q4_0': (2, 32, 18, q4_0),
}


def string(text):
    data = text.encode()
    return struct.pack('<Q', len(data)) + data


def entry(key, kind, value):
    return string(key) + struct.pack('<I', kind) + value


def array(key, kind, values):
    data = b''.join(string(v) if kind == STRING else
                    struct.pack('<f' if kind == FLOAT32 else '<i', v) for v in values)
    return string(key) + struct.pack('<IIQ', ARRAY, kind, len(values)) + data


def metadata(context, width, layers, heads, hidden, vocab):
    def number(key, value):
        return entry(key, UINT32, struct.pack('<I', value))

    special = ['<unk>', '<s>', '</s>']
    pieces = special + [f'<0x{b:02X}>' for b in range(256)]
    pieces += [f'word{i}' for i in range(vocab - len(pieces))]
    kinds = [2, 3, 3] + [6] * 256 + [1] * (vocab - 259)
    return [
        entry('general.architecture', STRING, string('llama')),
        number('llama.context_length', context),
        number('llama.embedding_length', width),
        number('llama.block_count', layers),
        number('llama.feed_forward_length', hidden),
        number('llama.attention.head_count', heads),
        number('llama.rope.dimension_count', width // heads),
        entry('llama.attention.layer_norm_rms_epsilon', FLOAT32, struct.pack('<f', 1e-5)),
        entry('tokenizer.ggml.model', STRING, string('llama')),
        array('tokenizer.ggml.tokens', STRING, pieces),
        array('tokenizer.ggml.scores', FLOAT32, [-float(i) for i in range(vocab)]),
        array('tokenizer.ggml.token_type', INT32, kinds),
        number('tokenizer.ggml.bos_token_id', 1),
        number('tokenizer.ggml.eos_token_id', 2),
    ]


def shapes(width, layers, hidden, vocab):
    """(name, rows or 0 for a vector, columns) of each tensor"""
    yield 'token_embd.weight', vocab, width
    yield 'output_norm.weight', 0, width
    yield 'output.weight', vocab, width
    for i in range(layers):
        for name in 'attn_norm', 'ffn_norm':
            yield f'blk.{i}.{name}.weight', 0, width
        for name in 'attn_q', 'attn_k', 'attn_v', 'attn_output':
            yield f'blk.{i}.{name}.weight', width, width
        yield f'blk.{i}.ffn_gate.weight', hidden, width
        yield f'blk.{i}.ffn_up.weight', hidden, width
        yield f'blk.{i}.ffn_down.weight', width, hidden


def main():
    path, file_format = sys.argv[1:3]
    context, width, layers, heads, hidden, vocab = map(int, sys.argv[3:9])
    number, elements, size, block = FORMATS[file_format]
    source = random.Random(1)
    repeated = b''.join(block(source) for _ in range(1 << 14))
    tensors, offset = [], 0
    for name, rows, columns in shapes(width, layers, hidden, vocab):
        used = rows * columns // elements * size if rows else columns * 4
        tensors.append((name, rows, columns, offset, used))
        offset += -(-used // ALIGNMENT) * ALIGNMENT
    pairs = metadata(context, width, layers, heads, hidden, vocab)
    head = struct.pack('<4sIQQ', b'GGUF', 3, len(tensors), len(pairs)) + b''.join(pairs)
    for name, rows, columns, start, _ in tensors:
        dims = (columns, rows) if rows else (columns,)
        head += string(name) + struct.pack(f'<I{len(dims)}Q', len(dims), *dims)
        head += struct.pack('<IQ', number if rows else F32, start)
    with open(path, 'wb') as file:
        file.write(head + bytes(-len(head) % ALIGNMENT))
        for _, rows, columns, _, used in tensors:
            if rows:
                whole, rest = divmod(used, len(repeated))
                for _ in range(whole):
                    file.write(repeated)
                file.write(repeated[:rest])
            else:
                file.write(struct.pack('<f', 1) * columns)
            file.write(bytes(-used % ALIGNMENT))


if __name__ == '__main__':
    main()

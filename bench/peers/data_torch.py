#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's DataLoader beside yoke's: bench/data and a DataLoader with as many workers, in turn.

    data_torch.py BUILD/bench/data FOLDER [workers=2] [seconds=1] [turns=5]

Both read the files that bench/data writes into FOLDER: windows of 129 tokens of 2 bytes as i64 from a numpy memmap,
and rows of 4 KiB from a .npy file (mmap_mode), shuffled, batches of 64, workers kept over epochs; with Pillow also
JPEGs of 500 x 400, made here, to f32 of 224 x 224.  Prints medians of the turns and how many times as many samples a
second yoke gives.
"""
import os
import re
import statistics
import subprocess
import sys
import time

import numpy
import torch

try:
    import PIL.Image
except ImportError:
    PIL = None

BATCH = 64
CONTEXT = 128


class Tokens(torch.utils.data.Dataset):
    def __init__(self, path):
        self.data = numpy.memmap(path, dtype=numpy.uint16, mode="r")

    def __len__(self):
        return (len(self.data) - 1) // CONTEXT

    def __getitem__(self, i):
        return torch.from_numpy(self.data[i * CONTEXT : (i + 1) * CONTEXT + 1].astype(numpy.int64))


class Rows(torch.utils.data.Dataset):
    def __init__(self, path):
        self.data = numpy.load(path, mmap_mode="r")

    def __len__(self):
        return len(self.data)

    def __getitem__(self, i):
        return torch.from_numpy(numpy.array(self.data[i]))


class Images(torch.utils.data.Dataset):
    def __init__(self, folder):
        self.paths = sorted(os.path.join(top, name) for top, _, names in os.walk(folder) for name in names)

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        with PIL.Image.open(self.paths[i]) as image:
            small = numpy.array(image.convert("RGB").resize((224, 224), PIL.Image.BILINEAR))
        return torch.from_numpy(small).permute(2, 0, 1).contiguous().float().div(255)


def make_images(folder, classes=4, each=64):
    """Pictures of some detail: noise that was made larger, in blocks of 20 and of 4 pixels."""
    random = numpy.random.default_rng(1)
    for c in range(classes):
        os.makedirs(f"{folder}/{c}", exist_ok=True)
        for k in range(each):
            coarse = PIL.Image.fromarray(random.integers(256, size=(20, 25, 3), dtype=numpy.uint8))
            fine = PIL.Image.fromarray(random.integers(256, size=(100, 125, 3), dtype=numpy.uint8))
            picture = PIL.Image.blend(*(x.resize((500, 400), PIL.Image.BICUBIC) for x in (coarse, fine)), 0.2)
            picture.save(f"{folder}/{c}/{k}.jpg", quality=90)


def theirs(dataset, workers, seconds):
    """Samples a second, behind the first batch."""
    loader = torch.utils.data.DataLoader(dataset, BATCH, shuffle=True, num_workers=workers,
                                         persistent_workers=workers > 0)
    rows, began = 0, None
    for batch in loader:
        if began is None:
            began = time.perf_counter()
            continue
        rows += len(batch)
        if time.perf_counter() - began > seconds:
            break
    return rows / (time.perf_counter() - began)


def ours(program, folder, row, workers, seconds):
    out = subprocess.run([program, folder, row, str(workers), str(seconds), "1"], check=True, text=True,
                         capture_output=True)
    return float(re.search(r"workers\s+(\S+) samples/s", out.stdout).group(1))


def main():
    program, folder = sys.argv[1:3]
    options = {"workers": 2, "seconds": 1.0, "turns": 5}
    for word in sys.argv[3:]:
        key, value = word.split("=")
        options[key] = type(options[key])(value)
    workers, seconds = options["workers"], options["seconds"]
    ours(program, folder, "tokens", workers, 0.1)  # writes the files
    sets = {"tokens": Tokens(folder + "/tokens.u16"), "rows": Rows(folder + "/rows.npy")}
    got = {}
    if PIL:
        if not os.path.isdir(folder + "/images"):
            make_images(folder + "/images")
        sets["images"] = Images(folder + "/images")
    for _ in range(options["turns"]):
        for row, dataset in sets.items():
            got.setdefault(row, []).append(ours(program, folder, row, workers, seconds))
            got.setdefault(row + " torch", []).append(theirs(dataset, workers, seconds))
        got.setdefault("memcpy", []).append(ours(program, folder, "memcpy", workers, seconds))
    median = {row: statistics.median(v) for row, v in got.items()}
    print(f"torch {torch.__version__}, numpy {numpy.__version__}, {workers} workers, {options['turns']} turns")
    for row in sets:
        print(f"{row:8s} {median[row]:12.4g} samples/s, DataLoader {median[row + ' torch']:10.4g}: "
              f"{median[row] / median[row + ' torch']:.1f} times")
    print(f"rows     {median['rows'] / median['memcpy']:.2f} of memcpy's {median['memcpy']:.4g}")


main()

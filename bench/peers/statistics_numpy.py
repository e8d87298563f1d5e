#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""NumPy, scikit-learn and Spectral Python beside bench/statistics, in turn, on the same shapes with as many threads.

    statistics_numpy.py BUILD/bench/statistics [moments] [drawn] [envi] [threads=N] [turns=3]

moments: mean, centred product, least and greatest of 256 MiB of f32 by NumPy in f64, and IncrementalPCA (20 components,
batches of 16384 rows) of a quarter of it, by the row.  drawn: NumPy's standard_normal in f32 beside a drawn cube, both
one thread, by the number.  envi: cubes of 256 x 256 x 100 by Spectral Python's load() beside yoke_cube_read, both from
the page cache; what load() gives of bsq and bil is a view of bands, so the same with pixels side by side comes behind it.  Prints medians of the turns, and how many times as long the others take; what is not installed is n/a.
"""
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

BYTES = 256 << 20
CHANNELS = 50, 100, 200
SHAPE = 256, 256, 100


def arguments():
    parts, keys = [], {"threads": os.cpu_count(), "turns": 3}
    for word in sys.argv[2:]:
        if "=" in word:
            key, value = word.split("=")
            keys[key] = int(value)
        else:
            parts.append(word)
    return os.path.abspath(sys.argv[1]), parts or ["moments", "drawn", "envi"], keys


PROGRAM, PARTS, KEYS = arguments()
for name in "OMP", "OPENBLAS", "MKL":  # before NumPy is loaded
    os.environ[name + "_NUM_THREADS"] = str(KEYS["threads"])
os.environ["YOKE_THREADS"] = str(KEYS["threads"])

import numpy as np

try:
    from sklearn.decomposition import IncrementalPCA
except ImportError:
    IncrementalPCA = None
try:
    import spectral.io.envi
except ImportError:
    spectral = None


def ours(part):
    return subprocess.run([PROGRAM, part], stdout=subprocess.PIPE, check=True, text=True).stdout


def taken(f):
    began = time.perf_counter()
    f()
    return time.perf_counter() - began


def row(name, mine, others):
    """Seconds, and those of others by name; NaN: n/a."""
    mine = statistics.median(mine)
    text = "%-12s yoke %10.4g ms" % (name, 1e3 * mine)
    for other, value in others.items():
        text += ", %s n/a" % other if not value else ", %s %10.4g ms: %6.2f times" % (
            other, 1e3 * statistics.median(value), statistics.median(value) / mine)
    print(text, flush=True)


def two_passes(x):
    wide = x.astype(np.float64)
    mean = wide.mean(0)
    wide -= mean
    return mean, wide.T @ wide, x.min(0), x.max(0)


def moments():
    rng = np.random.default_rng(1)
    mine, numpy, sklearn = ({c: [] for c in CHANNELS} for _ in range(3))
    data = rng.standard_normal(BYTES // 4, dtype=np.float32) + 1000
    for _ in range(KEYS["turns"]):
        for c, full in re.findall(r"C +(\d+) +full +([\d.]+) ms", ours("moments")):
            if int(c) in mine:
                mine[int(c)].append(float(full) / 1e3)
        for c in CHANNELS:
            x = data[: data.size // c * c].reshape(-1, c)
            numpy[c].append(taken(lambda: two_passes(x)))
            if IncrementalPCA:
                some = x[: len(x) // 4]
                sklearn[c].append(taken(lambda: IncrementalPCA(20, batch_size=16384).fit(some)) * len(x) / len(some))
    for c in CHANNELS:
        row("moments %d" % c, mine[c], {"NumPy": numpy[c], "IncrementalPCA": sklearn[c]})


def drawn():
    n = SHAPE[0] * SHAPE[1] * SHAPE[2]
    mine, numpy = [], []
    for _ in range(KEYS["turns"]):
        rng = np.random.default_rng(1)
        mine.append(float(re.search(r"([\d.]+) ns a number", ours("drawn")).group(1)) * 1e-9 * n)
        rng.standard_normal(n, dtype=np.float32)
        numpy.append(taken(lambda: rng.standard_normal(n, dtype=np.float32)))
    row("drawn", mine, {"standard_normal": numpy})


def envi():
    kinds = [(t, i) for t in ("f32", "u16") for i in ("bip", "bil", "bsq")]
    mine, theirs, pixels = ({k: [] for k in kinds} for _ in range(3))
    x = np.random.default_rng(1).uniform(1000, 2000, SHAPE).astype(np.float32)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for t, i in kinds if spectral else []:
            spectral.io.envi.save_image("%s_%s.hdr" % (t, i), x, dtype={"f32": "f4", "u16": "u2"}[t], interleave=i, ext="img")
        for _ in range(KEYS["turns"]):
            for t, i, ms in re.findall(r"(f32|u16) (bi.|bsq) +([\d.]+) ms", ours("envi")):
                mine[t, i].append(float(ms) / 1e3)
            for t, i in kinds if spectral else []:
                theirs[t, i].append(taken(lambda: spectral.io.envi.open("%s_%s.hdr" % (t, i)).load()))
                pixels[t, i].append(taken(lambda: np.ascontiguousarray(spectral.io.envi.open("%s_%s.hdr" % (t, i)).load())))
        os.chdir("/")
    for k in kinds:
        row("envi %s %s" % k, mine[k], {"Spectral Python": theirs[k], "as pixels": pixels[k]})


for part in PARTS:
    {"moments": moments, "drawn": drawn, "envi": envi}[part]()

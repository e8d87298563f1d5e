#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pandas' C reader beside yoke's: bench/data and read_csv in turn.

    data_pandas.py BUILD/bench/data FOLDER [workers=2] [turns=9]

Both read FOLDER/table.csv, which bench/data writes, from its opening to its last record.  pandas may take threads of
its own: taskset -c 0 and workers=0 compare one processor's work.
"""
import re
import statistics
import subprocess
import sys
import time

import pandas

program, folder = sys.argv[1:3]
options = {"workers": 2, "turns": 9}
for word in sys.argv[3:]:
    key, value = word.split("=")
    options[key] = int(value)
ours, theirs = [], []
for _ in range(options["turns"]):
    out = subprocess.run([program, folder, "csv", str(options["workers"]), "0.3", "1"], check=True, text=True,
                         capture_output=True)
    ours.append(float(re.search(r"workers\s+(\S+) samples/s", out.stdout).group(1)))
    began = time.perf_counter()
    records = len(pandas.read_csv(folder + "/table.csv", engine="c"))
    theirs.append(records / (time.perf_counter() - began))
ratio = sorted(a / b for a, b in zip(ours, theirs))
print(f"csv {statistics.median(ours):.4g} records/s, pandas {pandas.__version__} {statistics.median(theirs):.4g}: "
      f"{statistics.median(ratio):.2f} times ({ratio[0]:.2f} to {ratio[-1]:.2f} in {options['turns']} turns)")

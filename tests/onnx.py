#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the models in a folder (tests/onnx_case.h) with onnx and onnxruntime.

	onnx.py FOLDER

Prints a line for each: its name and "same", or what differs.  Exit status 77: a package is missing.
"""
import glob
import os
import sys

sys.path.pop(0)  # the folder of this file, which has the package's name
try:
    import numpy as np
    import onnx
    import onnxruntime
except ImportError as e:
    print(e)
    sys.exit(77)
try:
    import ml_dtypes
    BFLOAT16 = ml_dtypes.bfloat16
except ImportError:
    BFLOAT16 = None

onnxruntime.set_default_logger_severity(3)
TYPES = {1: np.float32, 2: np.uint8, 3: np.int8, 6: np.int32, 7: np.int64, 9: np.bool_, 10: np.float16, 11: np.float64, 16: BFLOAT16}


def dims(value):
    return [d.dim_value for d in value.type.tensor_type.shape.dim]


def load(path, value):
    return np.fromfile(path, dtype=TYPES[value.type.tensor_type.elem_type]).reshape(dims(value))


def difference(got, want, tol, name):
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"{name} is {got.dtype}{got.shape}, not {want.dtype}{want.shape}"
    if not np.issubdtype(got.dtype, np.inexact) and got.dtype != BFLOAT16:
        wrong = (got != want) & ~np.isinf(np.broadcast_to(tol, got.shape))
    else:
        with np.errstate(all="ignore"):
            a, b = got.astype(np.float64), want.astype(np.float64)
            wrong = ~((a == b) | (np.isnan(a) & np.isnan(b)) | (np.abs(a - b) <= tol * (1 + np.abs(b))))
            wrong &= ~np.isinf(np.broadcast_to(tol, got.shape))
    if not wrong.any():
        return None
    at = tuple(int(i) for i in np.argwhere(wrong)[0]) if got.ndim else ()
    return f"{name}{list(at)}: {got[at]} for {want[at]}, {int(wrong.sum())} of {wrong.size} differ"


def check(path):
    base = path[:-len(".onnx")]
    onnx.checker.check_model(path, full_check=True)
    model = onnx.load(path, load_external_data=False)
    names = [n.name for n in model.graph.node]
    if len(set(names)) != len(names) or "" in names:
        return "names of nodes are not unique"
    if (model.producer_name, model.opset_import[0].version) != ("yoke", 20):
        return "another producer or opset"
    feed = {v.name: load(f"{base}.in{i}", v) for i, v in enumerate(model.graph.input)}
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    if any(v.type.tensor_type.elem_type == 16 for v in list(model.graph.input) + list(model.graph.output)):
        return None  # NumPy has no such dtype to pass; the session was made
    got = session.run(None, feed)
    for i, v in enumerate(model.graph.output):
        want = load(f"{base}.out{i}", v)
        tol = float(open(f"{base}.tol0").read()) if not os.path.exists(f"{base}.bound{i}") else \
            np.fromfile(f"{base}.bound{i}", dtype=np.float64).reshape(want.shape)
        d = difference(got[i], want, tol, v.name)
        if d:
            return d
    return None


os.chdir(sys.argv[1])
for path in sorted(glob.glob("*.onnx")):
    try:
        why = check(path)
    except Exception as e:  # of any kind: the line is the report
        why = f"{type(e).__name__}: {e}"
    print(path[:-len(".onnx")], "same" if why is None else " ".join(why.split())[:600])

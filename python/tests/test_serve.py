# SPDX-License-Identifier: Apache-2.0
"""yoke.Server: functions of arrays by HTTP get batches, and each client its own samples."""
import io
import json
import threading
import urllib.error
import urllib.request

import numpy as np
import pytest

import yoke


def post(port, path, data, **headers):
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data, headers)
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=600) as r:
            return r.status, r.read()
    except urllib.error.HTTPError as e:
        return e.code, e.read()


def run(server, ask):
    """Runs the server here, and ask(port) on another thread."""
    port = server.start()
    got = []

    def client():
        try:
            got.append(ask(port))
        finally:
            server.stop()

    thread = threading.Thread(target=client)
    thread.start()
    server.run()
    thread.join()
    return got[0]


@pytest.fixture
def server():
    try:
        with yoke.Server() as s:
            s.function("/none", lambda x: x)
            s.start()
    except NotImplementedError as e:
        pytest.skip(str(e))
    with yoke.Server() as s:
        yield s


def test_json_and_npy(server):
    w = yoke.tensor([[1.0, 2.0], [3.0, 4.0]])
    server.function("/product", lambda x: (yoke.tensor(x) @ w).numpy(), rank=2)
    server.function("/sum", lambda x: x.sum(1), dtype="int64")
    x = np.array([[1, 2], [3, 4], [5, 6]], "float32")
    file = io.BytesIO()
    np.save(file, x)

    def ask(port):
        return (post(port, "/product", json.dumps(x.tolist()).encode()),
                post(port, "/product", file.getvalue(), **{"Content-Type": "application/x-npy"}),
                post(port, "/sum", b"[[9007199254740993, 0], [1, 2]]"))

    one, two, three = run(server, ask)
    want = x @ np.array([[1, 2], [3, 4]], "float32")
    assert one[0] == 200 and json.loads(one[1]) == want.tolist()
    assert two[0] == 200 and np.load(io.BytesIO(two[1])).tolist() == want.tolist()
    assert three == (200, b"[9007199254740993,3]")


def test_errors(server):
    def refuse(x):
        raise ValueError("negative samples") if (x < 0).any() else ArithmeticError("a fault")

    server.function("/refuse", refuse)
    server.function("/short", lambda x: x[:-1])
    got = run(server, lambda port: [post(port, "/refuse", b"[-1]"), post(port, "/refuse", b"[1]"), post(port, "/short", b"[1]"),
                                    post(port, "/refuse", b"no JSON"), post(port, "/other", b"[1]")])
    assert [g[0] for g in got] == [400, 500, 500, 400, 404]
    assert "negative samples" in json.loads(got[0][1])["error"]["message"]
    with pytest.raises(ValueError):
        server.function("/half", lambda x: x, dtype="float16")
    with pytest.raises(ValueError):
        yoke.Server().function("no-slash", lambda x: x)


def test_batches(server):
    sizes, first = [], threading.Event()

    def twice(x):
        sizes.append(len(x))
        first.wait(600)
        return 2 * x

    server.function("/twice", twice)

    def ask(port):
        got = {}
        clients = [threading.Thread(target=lambda i=i: got.update({i: post(port, "/twice", json.dumps([i, i + 100]).encode())}))
                   for i in range(8)]
        for c in clients:
            c.start()
        while not sizes:
            pass
        first.set()
        for c in clients:
            c.join()
        return got

    got = run(server, ask)
    assert {i: json.loads(g[1]) for i, g in got.items()} == {i: [2 * i, 2 * i + 200] for i in range(8)}
    assert sum(sizes) == 16 and len(sizes) <= 8

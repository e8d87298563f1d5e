# SPDX-License-Identifier: Apache-2.0
"""yoke.Server: functions of arrays by HTTP, for instance the forward pass of a network."""
from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any

from . import _core

_TYPES = {"float32": "<f4", "float64": "<f8", "int32": "<i4", "int64": "<i8"}


class Server:
    """Serves functions of arrays by HTTP.  Requests that wait are computed in one batch.

        with yoke.Server(port=8000) as s:
            s.function("/predict", lambda x: model(yoke.tensor(x)))
            print("port", s.start())
            s.run()

        curl http://127.0.0.1:8000/predict -d '[[1, 2], [3, 4]]'

    A request is an array whose first axis counts samples: nested lists of JSON, or a .npy file with Content-Type
    application/x-npy; the reply has the same form.  host: address to listen on.  port: 0: any free one.  key: that clients must
    send as Authorization: Bearer KEY.  open: other machines may connect without a key.  0 for connections (256), body (4 MiB),
    queue (64) and timeout (600 seconds): the default."""

    def __init__(self, *, host: str | None = None, port: int = 0, key: str | None = None, open: bool = False, connections: int = 0,
                 body: int = 0, queue: int = 0, timeout: int = 0) -> None:
        self._s = _core.server_new(host=host, port=port, key=key, open=open, connections=connections, body=body, queue=queue,
                                   timeout=timeout)

    def __enter__(self) -> Server:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Stops listening; requests without a reply get status 503."""
        _core.server_free(self._s)

    def function(self, path: str, f: Callable[[Any], Any], *, dtype: str = "float32", rank: int = 0, batch: int = 0) -> None:
        """Serves f under a path such as "/predict", by POST, before start.  f gets a NumPy array, the samples of one or several
        requests, and gives an array with as many.  A ValueError or TypeError is the client's (status 400), other exceptions are
        the server's.  dtype: of what f gets, float32, float64, int32 or int64.  rank: number of axes, 0: any.  batch: max samples
        of a call, unless one request has more; 0: 64."""
        if dtype not in _TYPES:
            raise ValueError(f"dtype: {dtype!r} is none of {', '.join(_TYPES)}")

        def call(data: bytes, type: str, dims: list[int]) -> tuple[bytes, str, list[int]]:
            import numpy
            y = numpy.asarray(f(numpy.frombuffer(data, type).reshape(dims)))
            if y.dtype.name not in _TYPES:
                y = y.astype("float32" if y.dtype.kind in "fV" else "int64")
            return y.tobytes(), _TYPES[y.dtype.name], list(y.shape)

        _core.serve_function(self._s, path, call, type=_TYPES[dtype], rank=rank, batch=batch)

    def start(self) -> int:
        """Begins to listen, and gives the port."""
        return _core.server_start(self._s)

    def run(self) -> None:
        """Calls functions, on this thread, until stop, or a signal raises an exception."""
        _core.server_run(self._s)

    def stop(self) -> None:
        """Ends run, after the requests that have arrived are answered.  From any thread."""
        _core.server_stop(self._s)

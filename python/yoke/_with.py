# SPDX-License-Identifier: Apache-2.0
"""Context managers: scopes, devices, settings, mixed precision, profiles."""
from __future__ import annotations

import os
from types import TracebackType
from typing import Any

from . import _core


class _With:
    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        raise NotImplementedError


class scope(_With):
    """with yoke.scope("step"): tensors made inside belong to it, and are freed after it; yoke.keep or yoke.lift one that
    is to stay.  Its name joins the path that errors, profiles and random numbers use."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._open: list[_core.Scope] = []

    def __enter__(self) -> scope:
        self._open.append(_core.scope_begin(self.name))
        return self

    def close(self) -> None:
        _core.scope_end(self._open.pop())


def context_of(name: str) -> _core.Context:
    """This thread's context on a device."""
    return _core.context_on(name)


class device(_With):
    """with yoke.device("opencl:0"): tensors made inside are on that device, which may also be named by its backend, "cuda".
    An operation takes tensors of one device; x.to("opencl:0") copies one."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._was: list[Any] = []

    def __enter__(self) -> device:
        self._was.append(_core.use(context_of(self.name)))
        return self

    def close(self) -> None:
        _core.use(self._was.pop())


class setting(_With):
    """with yoke.setting("plan.max", 8): a setting (`yoke info --env` lists them), which has its former value afterwards."""

    def __init__(self, name: str, value: object) -> None:
        self.name = name
        self.value = str(int(value)) if isinstance(value, bool) else str(value)
        self._was: list[str] = []

    def __enter__(self) -> setting:
        was = _core.setting_get(self.name)
        _core.setting_set(self.name, self.value)
        self._was.append(was)
        return self

    def close(self) -> None:
        _core.setting_set(self.name, self._was.pop())


def device_name(x: Any) -> str | None:
    """The name of a device: of yoke.device(..), "cuda:0", or the name of a backend; None for what is a dtype."""
    if isinstance(x, device):
        return x.name
    return x if isinstance(x, str) and (":" in x or x in ("cpu", "cuda", "opencl", "rocm")) else None


class autocast(_With):
    """Mixed precision: yoke.autocast(yoke.bf16) from here to the end of the innermost scope, or for good where none is open;
    with yoke.autocast(yoke.bf16): inside alone; the end of the block, after an exception too, restores the setting from before.

    Products take operands of that dtype, f16 or bf16; exp, log, sums, statistics and losses take f32; None: no more.
    keep_f32: patterns of scopes ("norm*,head") in which all is f32."""

    def __init__(self, dtype: Any = None, keep_f32: str | None = None) -> None:
        self.dtype, self.keep_f32 = dtype, keep_f32
        self._was = [_core._autocast()]
        self._new = True
        _core.autocast(dtype, keep_f32)

    def __enter__(self) -> autocast:
        if not self._new:  # entered once more
            self._was.append(_core._autocast())
            _core.autocast(self.dtype, self.keep_f32)
        self._new = False
        return self

    def close(self) -> None:
        _core.autocast(*self._was.pop())


class profile(_With):
    """with yoke.profile("trace.json") as p: what is done inside goes to a file of Chrome's trace format; p.table() has the
    rows as text, p.rows() as records."""

    def __init__(self, path: str | os.PathLike[str] | None = None, flags: int = 0) -> None:
        self.path = path
        self.flags = flags
        self._profile: _core.Profile | None = None
        self._table = ""
        self._rows: list[Any] = []

    def __enter__(self) -> profile:
        self._profile = _core.profile_new(flags=self.flags, active=1 << 40)
        return self

    def step(self) -> None:
        """A step of the program is over."""
        if self._profile is None:
            raise ValueError("profile: its block has ended, or not begun")
        _core.profile_step(self._profile)

    def table(self) -> str:
        """The rows as text."""
        return _core.profile_table(self._profile) if self._profile else self._table

    def rows(self) -> list[Any]:
        """A record for each kind of operation: op, calls, total .. as struct yoke_profile_row has them."""
        return _core.profile_rows(self._profile) if self._profile else self._rows

    def close(self) -> None:
        p = self._profile
        assert p is not None
        try:
            _core.sync()
            self._table, self._rows = _core.profile_table(p), _core.profile_rows(p)
            if self.path is not None:
                _core.profile_trace(p, os.fspath(self.path))
            _core.profile_step(p)  # all of it is one, where the program marks no steps
        finally:
            self._profile = None
            _core.profile_free(p)

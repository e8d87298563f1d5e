#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the types of the extension, by nanobind's stubgen: stubs.py FOLDER OUT.pyi, FOLDER being where _core is.

The class Tensor is a type that nanobind knows nothing of: what it has is written here.
"""
import importlib.util
import pathlib
import re
import sys
import types

NUMBERS = "Tensor | float"


def tensor_class() -> str:
    two = "add sub mul truediv floordiv mod pow and or xor lshift rshift matmul".split()
    lines = ["class Tensor:", '    """A tensor: a value that is computed when it is read, or a variable."""', ""]
    for name in ("shape: tuple[int, ...]", "dtype: yoke._record.dtype", "ndim: int", "size: int", "T: Tensor"):
        n, t = name.split(": ")
        lines += ["    @property", f"    def {n}(self) -> {t}: ...", ""]
    for op in two:
        lines.append(f"    def __{op}__(self, other: Any, /) -> Tensor: ...")
        lines.append(f"    def __r{op}__(self, other: Any, /) -> Tensor: ...")
    for op in "lt le gt ge".split():
        lines.append(f"    def __{op}__(self, other: Any, /) -> Tensor: ...")
    for op in "eq ne".split():
        lines.append(f"    def __{op}__(self, other: Any, /) -> Tensor: ...  # type: ignore[override]")
    lines += ["    __hash__: None  # type: ignore[assignment]"]
    lines += [f"    def __{op}__(self) -> Tensor: ..." for op in "neg pos abs invert".split()]
    lines += ["    def __getitem__(self, key: Any, /) -> Tensor: ...", "    def __setitem__(self, key: Any, value: Any, /) -> None: ...",
              "    def __iter__(self) -> Iterator[Tensor]: ...", "    def __len__(self) -> int: ...",
              "    def __bool__(self) -> bool: ...", "    def __float__(self) -> float: ...", "    def __int__(self) -> int: ...",
              "    def __index__(self) -> int: ...",
              "    def __array__(self, dtype: Any = None, copy: Any = None) -> numpy.ndarray[Any, Any]: ...",
              "    def __dlpack__(self, *, stream: Any = None, max_version: tuple[int, int] | None = None, "
              "dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> Any: ...",
              "    def __dlpack_device__(self) -> tuple[int, int]: ...", "    def _handle(self) -> int: ...",
              "    def item(self) -> Any: ...", "    def tolist(self) -> Any: ...",
              "    def numpy(self) -> numpy.ndarray[Any, Any]: ...", "    def astype(self, dtype: Any) -> Tensor: ...",
              "    def put(self, data: Any) -> None: ..."]
    return "\n".join(lines)


def methods(stub: str) -> str:
    """Functions of a tensor as methods, from their own types."""
    here = pathlib.Path(__file__).resolve().parent
    text = (here / "yoke" / "__init__.py").read_text()
    names = "".join(re.findall(r'"([^"]*)"', re.search(r"_core_methods = \((.*?)\)\.split", text, re.S).group(1))).split()
    out = []
    for name in names:
        m = re.search(rf"^def {name}\((\w+): [^,)]*(.*?)$", stub, re.M)
        if m and name != "put":
            out.append(f"    def {name}(self{m.group(2)}")
            if not m.group(2).rstrip().endswith("..."):
                out.append("        ...")
    return "\n".join(out)


def main() -> None:
    folder, out = map(pathlib.Path, sys.argv[1:3])
    package = types.ModuleType("yoke")  # what the extension names in its types
    package.__path__ = [str(folder), str(pathlib.Path(__file__).resolve().parent / "yoke")]
    sys.modules["yoke"] = package
    core = importlib.import_module("yoke._core")
    from nanobind.stubgen import StubGen

    sg = StubGen(core)
    sg.put(core)
    stub = sg.get()
    # the class as stubgen sees it, without types, becomes the one here
    stub = re.sub(r"^class (Tensor|Buffer)\b.*?(?=^\S)", "", stub, flags=re.M | re.S)
    stub = re.sub(r"\byoke\._core\.", "", stub)
    head, _, rest = stub.partition("\n\n")
    given = "\n".join(x for x in (head + "\n\n" + rest).split("\n"))
    imports = "from collections.abc import Iterator\nfrom typing import Any\nimport collections.abc\nimport typing\nimport numpy\n" \
              "import yoke._record\n"
    given = re.sub(r"^(from __future__.*\n)?", lambda m: (m.group(0) or "") , given, count=1)
    text = imports + "\n" + tensor_class() + "\n" + methods(given) + "\n\n" + given
    out.write_text(text)


if __name__ == "__main__":
    main()

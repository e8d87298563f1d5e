#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the types of the extension, by nanobind's stubgen: stubs.py FOLDER OUT.pyi, FOLDER being where _core is.

The class Tensor is a type that nanobind knows nothing of: what it has is written here.
"""
import ast
import importlib.util
import pathlib
import re
import sys
import types

NUMBERS = "Tensor | float"


def tensor_class() -> str:
    two = "add sub mul truediv floordiv mod pow and or xor lshift rshift matmul".split()
    lines = ["class Tensor:", '    """A tensor: a value that is computed when it is read, or a variable."""', ""]
    # int, float and bool are methods as well
    for name in ("shape: tuple[int, ...]", "dtype: yoke._record.dtype", "ndim: int", "size: int", "T: Tensor", "mT: Tensor", "device: str",
                 "is_variable: bool", "nbytes: int"):
        n, t = name.split(": ")
        lines += ["    @property", f"    def {n}(self) -> {t}: ...", ""]
    for op in two:
        lines.append(f"    def __{op}__(self, other: Any, /) -> Tensor: ...")
        lines.append(f"    def __r{op}__(self, other: Any, /) -> Tensor: ...")
    for op in "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift".split():
        lines.append(f"    def __i{op}__(self, other: Any, /) -> Tensor: ...")
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
              "    def item(self) -> Any: ...", "    def numpy(self) -> numpy.ndarray[Any, Any]: ...",
              "    def __contains__(self, value: Any, /) -> bool: ...", "    def __format__(self, spec: str, /) -> str: ...",
              "    def __round__(self, decimals: int | None = None, /) -> Tensor: ...",
              "    def view(self, *shape: Any) -> Tensor: ...",
              *(f"    def {n}(self) -> Tensor: ..." for n in "half float double int long bool copy neg cpu".split()),
              *(f"    def {n}(self, other: Any) -> Tensor: ..." for n in "add sub mul maximum minimum".split()),
              "    def div(self, other: Any, *, rounding_mode: str | None = None) -> Tensor: ...",
              "    def pow(self, exponent: Any) -> Tensor: ...", "    def numel(self) -> builtins.int: ...",
              "    def dim(self) -> builtins.int: ...",
              "    def put(self, data: Any) -> None: ..."]
    return re.sub(r"(-> |: |\[|\| )(int|float|bool)\b(?!\()", r"\1builtins.\2", "\n".join(lines)).replace("builtins.builtins.", "builtins.")


# The files of functions for the package's users.
FUNCTIONS = [f"_{name}.py" for name in "shapes reductions creation elements indexing statistics matrices resolvents sampling".split()]


def listed(name: str, file: str = "_methods.py") -> list[str]:
    """A list of names in a file of the package."""
    for node in parsed(file).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == name:
            texts = [c.value for c in ast.walk(node.value) if isinstance(c, ast.Constant)]
            return texts if isinstance(node.value, ast.List) else "".join(texts).split()
    raise SystemExit(f"stubs.py: {file} has no list {name}")


def parsed(file: str) -> ast.Module:
    return ast.parse((pathlib.Path(__file__).resolve().parent / "yoke" / file).read_text())


def methods(stub: str) -> str:
    """Functions of a tensor as methods, from their own types."""
    out = []
    for name in listed("CORE_METHODS"):
        m = re.search(rf"^def {name}\((\w+): [^,)]*(.*?)$", stub, re.M)
        if m:
            out.append(f"    def {name}(self{m.group(2)}")
            if not m.group(2).rstrip().endswith("..."):
                out.append("        ...")
    defined: dict[str, ast.FunctionDef] = {}
    for node in (n for file in [*FUNCTIONS, "_methods.py"] for n in parsed(file).body):
        if isinstance(node, ast.FunctionDef):
            defined[node.name] = node
        elif isinstance(node, ast.Assign):  # other names: a = b, a, b = c, d
            values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value] * len(node.targets)
            targets = [t for n in node.targets for t in (n.elts if isinstance(n, ast.Tuple) else [n])]
            defined |= {t.id: defined[v.id] for t, v in zip(targets, values)
                        if isinstance(t, ast.Name) and isinstance(v, ast.Name) and v.id in defined}
    for name in listed("METHODS"):
        f = defined[name]
        f.args.args[0] = ast.arg("self")
        returns = ast.unparse(f.returns) if f.returns else "Any"
        out.append(f"    def {name}({ast.unparse(f.args)}) -> {returns}:")
        out.append(f"        {(ast.get_docstring(f, clean=False) or '')!r}")
    return re.sub(r"(-> |: |\[|\| )(int|float|bool)\b", r"\1builtins.\2", "\n".join(out))


def main() -> None:
    folder, out = map(pathlib.Path, sys.argv[1:3])
    package = types.ModuleType("yoke")  # what the extension names in its types
    package.__path__ = [str(folder), str(pathlib.Path(__file__).resolve().parent / "yoke")]
    sys.modules["yoke"] = package
    core = importlib.import_module("yoke._core")
    from nanobind.stubgen import StubGen

    sg = StubGen(core, include_private=True)
    sg.put(core)
    stub = sg.get()
    # the class as stubgen sees it, without types, becomes the one here
    stub = re.sub(r"^class (Tensor|Buffer)\b.*?(?=^\S)", "", stub, flags=re.M | re.S)
    stub = re.sub(r"\byoke\._core\.", "", stub)
    stub = re.sub(r"\byoke\.(DeviceError|ReleasedError)\b", r"\1", stub)
    # stubgen imports the exceptions on one line or, if that would be long, in parentheses
    stub = re.sub(r"^from yoke import (?:DeviceError.*|\([^)]*\bDeviceError\b[^)]*\))$",
                  "class DeviceError(RuntimeError): ...\n\nclass ReleasedError(RuntimeError): ...", stub, flags=re.M)
    stub = re.sub(r"\bNDArray(?!\[)\b(?=[,\]):])", "NDArray[Any]", stub)
    stub = re.sub(r"\*args, \*\*kwargs\)", "*args: Any, **kwargs: Any)", stub)
    stub = re.sub(r"(?<=[:>] )bytes\b", "builtins.bytes", stub)
    for bare, full in (("list", "list[Any]"), ("tuple", "tuple[Any, ...]"), ("dict", "dict[str, Any]"),
                       ("collections.abc.Sequence", "collections.abc.Sequence[Any]"), ("Sequence", "Sequence[Any]")):
        stub = re.sub(rf"(?<=[:>] ){bare}(?=[,):]|$| =)", full, stub, flags=re.M)
    head, _, rest = stub.partition("\n\n")
    given = "\n".join(x for x in (head + "\n\n" + rest).split("\n"))
    names = re.findall(r"^(?:def|class) ([a-zA-Z]\w*)", given, re.M) + re.findall(r"^([A-Z]\w*)\b.*: int", given, re.M)
    hidden = {name for file in [*FUNCTIONS, "_fft.py"] for name in listed("__all__", file)}  # which these have, and others the package itself
    for node in ast.walk(parsed("__init__.py")):
        if isinstance(node, ast.ImportFrom):
            hidden |= {a.asname for a in node.names if a.asname}
    public = ", ".join(f'"{n}"' for n in sorted(set(names) | {"Tensor"}) if n not in hidden)
    imports = "from collections.abc import Iterator\nfrom typing import Any\nimport builtins\nimport collections.abc\nimport typing\nimport numpy\n" \
              "import yoke._record\n"
    given = re.sub(r"^(from __future__.*\n)?", lambda m: (m.group(0) or "") , given, count=1)
    text = imports + f"\nAxis = int | collections.abc.Sequence[int] | None\n__all__ = [{public}]\n\n" + tensor_class() + "\n" + methods(given) + "\n\n" + given
    out.write_text(text)


if __name__ == "__main__":
    main()

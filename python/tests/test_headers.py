# SPDX-License-Identifier: Apache-2.0
"""Every function of the headers is there under its name, with its comment."""
import importlib.util
import os
import pathlib

import pytest

import yoke

here = pathlib.Path(__file__).resolve().parent
include = pathlib.Path(os.environ.get("YOKE_TEST_INCLUDE", here.parent.parent / "include"))


def load():
    spec = importlib.util.spec_from_file_location("bind", here.parent / "bind.py")
    bind = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(bind)
    return bind


pytestmark = pytest.mark.skipif(not include.is_dir() or not (here.parent / "bind.py").exists(),
                                reason="the headers and bind.py are not beside the tests")


def test_every_function_of_the_headers():
    bind = load()
    functions, _ = bind.read_headers(str(include))
    assert len(functions) > 300
    names = {f.name for f in functions}
    missing = [f.name for f in functions if f.name not in bind.ABSENT and not hasattr(yoke, bind.python_name(f.name))]
    assert missing == []
    assert [n for n in bind.ABSENT if n not in names] == [], "absent from the headers, too"
    assert [n for n in bind.HAND if n not in names] == [], "by hand, but in no header"
    undocumented = [f.name for f in functions if f.doc and f.name not in bind.ABSENT and
                    not getattr(yoke, bind.python_name(f.name)).__doc__]
    assert undocumented == []
    # what it does, and not its arguments alone
    functions = [getattr(yoke, n) for n in dir(yoke) if not n.startswith("_")]
    assert [f.__name__ for f in functions if type(f).__name__ == "nb_func" and "\n\n" not in (f.__doc__ or "")] == []


def test_a_new_function_is_noticed(tmp_path):
    bind = load()
    (tmp_path / "yoke.h").write_text("// Does x.\nYOKE_API yoke_tensor *yoke_surprise(yoke_tensor *x, struct thing *y);\n")
    functions, structs = bind.read_headers(str(tmp_path))
    assert [f.name for f in functions] == ["surprise"] and functions[0].doc == "Does x."
    with pytest.raises(bind.Unknown):
        bind.Writer(functions[0], structs).write()

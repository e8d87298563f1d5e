# SPDX-License-Identifier: Apache-2.0
"""The programs of doc/python.md and README.md and the examples run; types are right."""
import os
import pathlib
import re
import subprocess
import sys

import pytest

here = pathlib.Path(__file__).resolve().parent
page = here.parent.parent / "doc" / "python.md"
readme = here.parent.parent / "README.md"
examples = sorted((here.parent / "examples").glob("*.py"))


def programs(file=page):
    return re.findall(r"```python\n(.*?)```", file.read_text(), re.S) if file.exists() else []


@pytest.mark.parametrize("number", range(6))
def test_a_program_of_the_page_runs(number, program, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if not page.exists():
        pytest.skip("the page is not beside the tests")
    assert len(programs()) == 6
    assert "warn" not in program(programs()[number])


def test_the_program_of_the_readme_learns(program, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if not page.exists():
        pytest.skip("the page is not beside the tests")
    (text,) = programs(readme)
    first, last = map(float, re.search(r"loss ([\d.]+) to ([\d.]+)", program(text)).groups())
    assert last < 0.1 * first


def test_the_digits_are_learned_as_in_c(program, tmp_path):
    pytest.importorskip("sklearn")
    said = program((here.parent / "examples" / "digits.py").read_text(), "digits.npz", cwd=tmp_path)
    right = float(re.search(r"right ([\d.]+) %", said).group(1))
    assert right >= 97, said
    inc = pathlib.Path(os.environ.get("YOKE_TEST_BUILD", "none")) / "examples" / "digits"
    if not inc.exists():
        pytest.skip("examples/digits.c is not built beside the tests")
    done = subprocess.run([inc, "digits.npz"], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    steps = [x for x in done.stdout.split("\n") if x.startswith("step ")]
    assert len(steps) == 540 and steps == [x for x in said.split("\n") if x.startswith("step ")]
    assert f"right {right:.1f} %" in done.stdout


@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_types_of_examples_and_programs(checker, tmp_path):
    pytest.importorskip(checker)
    import yoke

    folder = pathlib.Path(yoke.__file__).parent
    assert (folder / "_core.pyi").exists(), "the types were not written (python/stubs.py)"
    files = list(map(str, examples))
    for i, text in enumerate(programs()):
        (tmp_path / f"program{i}.py").write_text(text)
        files.append(str(tmp_path / f"program{i}.py"))
    how = ["--strict", "--cache-dir", str(tmp_path / "cache")] if checker == "mypy" else ["--pythonpath", sys.executable]
    done = subprocess.run([sys.executable, "-m", checker, *how, *files], capture_output=True, text=True, cwd=tmp_path,
                          env=os.environ if folder.parent.name == "site-packages" else {**os.environ, "MYPYPATH": str(folder.parent)})
    said = done.stdout + done.stderr
    if checker == "pyright" and "0 errors" not in said and re.search("nodeenv|node|network|resolve", said, re.I) and "error:" not in said:
        pytest.skip("pyright has no Node.js: " + said.strip().split("\n")[-1])
    assert done.returncode == 0, said


def test_types_of_the_package_itself(tmp_path):
    pytest.importorskip("mypy")
    import yoke

    folder = pathlib.Path(yoke.__file__).parent
    done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path), "-p", "yoke"], capture_output=True, text=True,
                          cwd=tmp_path, env={**os.environ, "MYPYPATH": str(folder.parent)} if folder.parent.name != "site-packages" else os.environ)
    assert done.returncode == 0, done.stdout + done.stderr

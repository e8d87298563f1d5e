# SPDX-License-Identifier: Apache-2.0
"""Fixtures of all tests: random numbers with a printed seed, and child processes."""
import os
import subprocess
import sys

import numpy as np
import pytest

SEED = int(os.environ.get("YOKE_TEST_SEED", "1"))


def pytest_report_header():
    return f"YOKE_TEST_SEED={SEED}"


@pytest.fixture
def rng():
    return np.random.default_rng(SEED)


@pytest.fixture
def program(tmp_path):
    """Runs a program in a process of its own: its output, or with fails=True its errors."""

    def run(text, *args, fails=False, timeout=600, cwd=None, **env):
        path = tmp_path / "program.py"
        path.write_text(text)
        done = subprocess.run([sys.executable, str(path), *args], capture_output=True, text=True, timeout=timeout, cwd=cwd,
                              env={**os.environ, **env})
        assert (done.returncode != 0) == fails, done.stdout + done.stderr
        return done.stderr if fails else done.stdout + done.stderr

    return run

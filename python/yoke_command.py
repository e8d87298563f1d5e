# SPDX-License-Identifier: Apache-2.0
"""Starts the command `yoke` that the wheel has inside, or the distribution's. It imports neither yoke nor NumPy, whose loading would take longer
than most commands."""
from __future__ import annotations

import os
import signal
import sys


def main() -> None:
    prefix = os.path.join(os.path.dirname(os.path.abspath(__file__)), "yoke", "_prefix")
    if not os.path.isdir(prefix):  # a distribution's package, beside one that has the command
        prefix = sys.base_prefix
    program = os.path.join(prefix, "bin", "yoke")
    for ignored in signal.SIGPIPE, signal.SIGXFSZ:  # by Python, and a program would inherit that
        signal.signal(ignored, signal.SIG_DFL)
    try:
        os.execv(program, ["yoke", *sys.argv[1:]])
    except OSError as e:
        sys.exit(f"yoke: {program}: {e.strerror}; reinstall yoke")


if __name__ == "__main__":
    main()

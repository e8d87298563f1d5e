# SPDX-License-Identifier: Apache-2.0
"""`python -m yoke` is the command `yoke`."""
import runpy

runpy.run_module("yoke_command", run_name="__main__")

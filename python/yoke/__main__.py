# SPDX-License-Identifier: Apache-2.0
"""`python -m yoke` is the command `yoke`."""
from yoke_command import main

main()

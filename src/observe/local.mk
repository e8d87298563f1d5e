# SPDX-License-Identifier: Apache-2.0
# observe: profiler, reports, monitors.

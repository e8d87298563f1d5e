# SPDX-License-Identifier: Apache-2.0
# Documents.
dist_man_MANS += doc/yoke.1
EXTRA_DIST += plugins/README

# SPDX-License-Identifier: Apache-2.0
# ops: one file for each family of operations, found by build-aux/sources.
libyokecore_la_SOURCES += $(ops_sources)

# SPDX-License-Identifier: Apache-2.0
# conform: what the ops of the plugin ABI have to give, and whether a device does.
# build-aux/sources finds the files.
libyokecore_la_SOURCES += $(conform_sources)

# SPDX-License-Identifier: Apache-2.0
# The skeleton plugin: built for the tests; its source is installed with the examples.
check_LTLIBRARIES += plugins/skeleton/yoke_skeleton.la
plugins_skeleton_yoke_skeleton_la_SOURCES = plugins/skeleton/skeleton.c
plugins_skeleton_yoke_skeleton_la_LDFLAGS = $(check_module_ldflags) \
	-export-symbols-regex '^yoke_plugin_init$$'

# SPDX-License-Identifier: Apache-2.0
# Documents.  yoke.1 is written by hand; the page of the settings is what the command just built says.
dist_man_MANS += doc/yoke.1
man_MANS = doc/yoke-settings.7
dist_doc_DATA += README.md doc/architecture.md
EXTRA_DIST += HACKING plugins/README doc/settings.sh
CLEANFILES += doc/yoke-settings.7

doc/yoke-settings.7: doc/settings.sh yoke$(EXEEXT) $(plugin_LTLIBRARIES)
	$(AM_V_GEN)$(MKDIR_P) doc && $(SHELL) $(srcdir)/doc/settings.sh ./yoke$(EXEEXT) \
		'$(abs_builddir)/backends/opencl/.libs' >$@.tmp && mv $@.tmp $@

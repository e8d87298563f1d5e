# SPDX-License-Identifier: Apache-2.0
# Documents.  yoke.1 is written by hand; the page of the settings is what the command just built
# says, those of the library and of plugins are the header and the guide in another form.
dist_man_MANS += doc/yoke.1
library_pages = \
	doc/yoke.3 \
	doc/yoke-cube.3 \
	doc/yoke-data.3 \
	doc/yoke-dist.3 \
	doc/yoke-fit.3 \
	doc/yoke-math.3 \
	doc/yoke-nn.3 \
	doc/yoke-observe.3 \
	doc/yoke-op.3 \
	doc/yoke-optim.3 \
	doc/yoke-pipeline.3 \
	doc/yoke-run.3
man_MANS = doc/yoke-settings.7 $(library_pages) doc/yoke-plugin.7
dist_doc_DATA += README.md doc/architecture.md doc/gpu.md doc/python.md doc/ranks.md
dist_pkgdata_DATA = doc/quirks.conf
EXTRA_DIST += HACKING plugins/README doc/library.sh doc/plugin.sh doc/settings.sh
CLEANFILES += $(man_MANS)

doc/yoke-settings.7: doc/settings.sh yoke$(EXEEXT) $(plugin_LTLIBRARIES)
	$(AM_V_GEN)$(MKDIR_P) doc && $(SHELL) $(srcdir)/doc/settings.sh ./yoke$(EXEEXT) \
		'$(abs_builddir)/backends/opencl/.libs:$(abs_builddir)/plugins/cuda/.libs:$(abs_builddir)/plugins/rocm/.libs' \
		>$@.$$$$ && mv $@.$$$$ $@

doc/yoke.3: doc/library.sh include/yoke.h
	$(AM_V_GEN)$(MKDIR_P) doc && $(SHELL) $(srcdir)/doc/library.sh $(srcdir)/include/yoke.h \
		>$@.$$$$ && mv $@.$$$$ $@

doc/yoke-optim.3: doc/library.sh include/yoke-optim.h
	$(AM_V_GEN)$(MKDIR_P) doc && $(SHELL) $(srcdir)/doc/library.sh $(srcdir)/include/yoke-optim.h \
		>$@.$$$$ && mv $@.$$$$ $@

doc/yoke-observe.3: doc/library.sh include/yoke-observe.h
	$(AM_V_GEN)$(MKDIR_P) doc && $(SHELL) $(srcdir)/doc/library.sh $(srcdir)/include/yoke-observe.h \
		>$@.$$$$ && mv $@.$$$$ $@

doc/yoke-pipeline.3: doc/library.sh include/yoke-pipeline.h
	$(AM_V_GEN)$(MKDIR_P) doc && $(SHELL) $(srcdir)/doc/library.sh $(srcdir)/include/yoke-pipeline.h \
		>$@.$$$$ && mv $@.$$$$ $@

doc/yoke-cube.3: doc/library.sh include/yoke-cube.h
	$(AM_V_GEN)$(MKDIR_P) doc && $(SHELL) $(srcdir)/doc/library.sh $(srcdir)/include/yoke-cube.h \
		>$@.$$$$ && mv $@.$$$$ $@

doc/yoke-nn.3: doc/library.sh include/yoke-nn.h
	$(AM_V_GEN)$(MKDIR_P) doc && $(SHELL) $(srcdir)/doc/library.sh $(srcdir)/include/yoke-nn.h \
		>$@.$$$$ && mv $@.$$$$ $@

doc/yoke-op.3: doc/library.sh include/yoke-op.h
	$(AM_V_GEN)$(MKDIR_P) doc && $(SHELL) $(srcdir)/doc/library.sh $(srcdir)/include/yoke-op.h \
		>$@.$$$$ && mv $@.$$$$ $@

doc/yoke-fit.3: doc/library.sh include/yoke-fit.h
	$(AM_V_GEN)$(MKDIR_P) doc && $(SHELL) $(srcdir)/doc/library.sh $(srcdir)/include/yoke-fit.h \
		>$@.$$$$ && mv $@.$$$$ $@

doc/yoke-math.3: doc/library.sh include/yoke-math.h
	$(AM_V_GEN)$(MKDIR_P) doc && $(SHELL) $(srcdir)/doc/library.sh $(srcdir)/include/yoke-math.h \
		>$@.$$$$ && mv $@.$$$$ $@

doc/yoke-run.3: doc/library.sh include/yoke-run.h
	$(AM_V_GEN)$(MKDIR_P) doc && $(SHELL) $(srcdir)/doc/library.sh $(srcdir)/include/yoke-run.h \
		>$@.$$$$ && mv $@.$$$$ $@

doc/yoke-data.3: doc/library.sh include/yoke-data.h
	$(AM_V_GEN)$(MKDIR_P) doc && $(SHELL) $(srcdir)/doc/library.sh $(srcdir)/include/yoke-data.h \
		>$@.$$$$ && mv $@.$$$$ $@

doc/yoke-dist.3: doc/library.sh include/yoke-dist.h
	$(AM_V_GEN)$(MKDIR_P) doc && $(SHELL) $(srcdir)/doc/library.sh $(srcdir)/include/yoke-dist.h \
		>$@.$$$$ && mv $@.$$$$ $@

doc/yoke-plugin.7: doc/plugin.sh plugins/README
	$(AM_V_GEN)$(MKDIR_P) doc && $(SHELL) $(srcdir)/doc/plugin.sh $(srcdir)/plugins/README \
		>$@.$$$$ && mv $@.$$$$ $@

# Completion in the shells, where bash-completion and zsh look.
bashcompletiondir = $(datadir)/bash-completion/completions
dist_bashcompletion_DATA = doc/completion/yoke
zshcompletiondir = $(datadir)/zsh/site-functions
dist_zshcompletion_DATA = doc/completion/_yoke

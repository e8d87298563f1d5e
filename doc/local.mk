# SPDX-License-Identifier: Apache-2.0
# Documents.  The keys in yoke.1 and the page of the settings come from the command just built; the pages of the library and of
# plugins are made of the headers and of a guide.
library_pages = \
	doc/yoke.3 \
	doc/yoke-cube.3 \
	doc/yoke-engine.3 \
	doc/yoke-data.3 \
	doc/yoke-dist.3 \
	doc/yoke-fit.3 \
	doc/yoke-linalg.3 \
	doc/yoke-math.3 \
	doc/yoke-nn.3 \
	doc/yoke-observe.3 \
	doc/yoke-op.3 \
	doc/yoke-optim.3 \
	doc/yoke-pipeline.3 \
	doc/yoke-model.3 \
	doc/yoke-quant.3 \
	doc/yoke-run.3 \
	doc/yoke-serve.3 \
	doc/yoke-tokenizer.3
man_MANS = doc/yoke.1 doc/yoke-settings.7 $(library_pages) doc/yoke-plugin.7
dist_doc_DATA += README.md HACKING
# below the directory of README.md, whose links they keep
nobase_dist_doc_DATA = \
	bench/README.md \
	doc/architecture.md \
	doc/c.md \
	doc/data.md \
	doc/devices.md \
	doc/getting-started.md \
	doc/gpu.md \
	doc/hyperspectral.md \
	doc/plugins.md \
	doc/python.md \
	doc/performance.md \
	doc/ranks.md \
	doc/serve.md \
	doc/resolvents.md
dist_pkgdata_DATA = doc/quirks.conf
EXTRA_DIST += doc/yoke.1.in doc/command.sh doc/guide.sh doc/library.sh doc/settings.sh doc/site.sh
CLEANFILES += $(man_MANS)

doc/yoke.1: doc/command.sh doc/yoke.1.in yoke$(EXEEXT)
	$(AM_V_GEN)$(MKDIR_P) doc && $(SHELL) $(srcdir)/doc/command.sh ./yoke$(EXEEXT) $(srcdir)/doc/yoke.1.in \
		>$@.$$$$ && mv $@.$$$$ $@

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

doc/yoke-linalg.3: doc/library.sh include/yoke-linalg.h
	$(AM_V_GEN)$(MKDIR_P) doc && $(SHELL) $(srcdir)/doc/library.sh $(srcdir)/include/yoke-linalg.h \
		>$@.$$$$ && mv $@.$$$$ $@

doc/yoke-math.3: doc/library.sh include/yoke-math.h
	$(AM_V_GEN)$(MKDIR_P) doc && $(SHELL) $(srcdir)/doc/library.sh $(srcdir)/include/yoke-math.h \
		>$@.$$$$ && mv $@.$$$$ $@

doc/yoke-model.3: doc/library.sh include/yoke-model.h
	$(AM_V_GEN)$(MKDIR_P) doc && $(SHELL) $(srcdir)/doc/library.sh $(srcdir)/include/yoke-model.h \
		>$@.$$$$ && mv $@.$$$$ $@

doc/yoke-engine.3: doc/library.sh include/yoke-engine.h
	$(AM_V_GEN)$(MKDIR_P) doc && $(SHELL) $(srcdir)/doc/library.sh $(srcdir)/include/yoke-engine.h \
		>$@.$$$$ && mv $@.$$$$ $@

doc/yoke-serve.3: doc/library.sh include/yoke-serve.h
	$(AM_V_GEN)$(MKDIR_P) doc && $(SHELL) $(srcdir)/doc/library.sh $(srcdir)/include/yoke-serve.h \
		>$@.$$$$ && mv $@.$$$$ $@

doc/yoke-quant.3: doc/library.sh include/yoke-quant.h
	$(AM_V_GEN)$(MKDIR_P) doc && $(SHELL) $(srcdir)/doc/library.sh $(srcdir)/include/yoke-quant.h \
		>$@.$$$$ && mv $@.$$$$ $@

doc/yoke-run.3: doc/library.sh include/yoke-run.h
	$(AM_V_GEN)$(MKDIR_P) doc && $(SHELL) $(srcdir)/doc/library.sh $(srcdir)/include/yoke-run.h \
		>$@.$$$$ && mv $@.$$$$ $@

doc/yoke-tokenizer.3: doc/library.sh include/yoke-tokenizer.h
	$(AM_V_GEN)$(MKDIR_P) doc && $(SHELL) $(srcdir)/doc/library.sh $(srcdir)/include/yoke-tokenizer.h \
		>$@.$$$$ && mv $@.$$$$ $@

doc/yoke-data.3: doc/library.sh include/yoke-data.h
	$(AM_V_GEN)$(MKDIR_P) doc && $(SHELL) $(srcdir)/doc/library.sh $(srcdir)/include/yoke-data.h \
		>$@.$$$$ && mv $@.$$$$ $@

doc/yoke-dist.3: doc/library.sh include/yoke-dist.h
	$(AM_V_GEN)$(MKDIR_P) doc && $(SHELL) $(srcdir)/doc/library.sh $(srcdir)/include/yoke-dist.h \
		>$@.$$$$ && mv $@.$$$$ $@

doc/yoke-plugin.7: doc/guide.sh doc/plugins.md
	$(AM_V_GEN)$(MKDIR_P) doc && $(SHELL) $(srcdir)/doc/guide.sh $(srcdir)/doc/plugins.md yoke-plugin 7 \
		>$@.$$$$ && mv $@.$$$$ $@

# The guides and the manual pages as web pages, in html/.
html-local: $(man_MANS)
	@test -n '$(PANDOC)$(MANDOC)' || { echo 'make html: configure found neither pandoc nor mandoc' >&2; exit 1; }
	$(AM_V_GEN)$(SHELL) $(srcdir)/doc/site.sh $(srcdir) '$(PANDOC)' '$(MANDOC)' html $(man_MANS)
clean-local: clean-html
.PHONY: clean-html
clean-html:
	rm -rf html

# A README.md in each directory of the source.
EXTRA_DIST += $(directory_readmes)
directory_readmes = \
	backends/README.md \
	backends/cpu/README.md \
	backends/cpu/contract/README.md \
	backends/gpu/README.md \
	backends/opencl/README.md \
	bench/README.md \
	cl/README.md \
	packaging/README.md \
	plugins/README.md \
	plugins/cuda/README.md \
	plugins/mpi/README.md \
	plugins/native/README.md \
	plugins/rocm/README.md \
	plugins/skeleton/README.md \
	src/README.md \
	src/app/live/README.md \
	src/app/report/README.md \
	src/app/serve/README.md \
	src/app/tool/README.md \
	src/app/config/README.md \
	src/app/parallel/README.md \
	src/app/train/README.md \
	src/core/base/README.md \
	src/core/device/README.md \
	src/core/graph/README.md src/core/ops/README.md \
	src/core/kernel/README.md \
	src/core/plan/README.md \
	src/lib/comm/README.md \
	src/lib/conform/README.md \
	src/lib/data/README.md \
	src/lib/fit/README.md \
	src/lib/formats/README.md \
	src/lib/export/README.md \
	src/lib/http/README.md \
	src/lib/engine/README.md \
	src/lib/models/README.md \
	src/lib/nn/README.md \
	src/lib/observe/README.md \
	src/lib/optim/README.md \
	src/lib/runs/README.md \
	src/lib/text/README.md \
	src/lib/schema/README.md \
	src/lib/template/README.md \
	src/lib/tokenizer/README.md \
	tests/README.md \
	tests/fake_gpu/README.md

# Completion in the shells, where bash-completion and zsh look.
bashcompletiondir = $(datadir)/bash-completion/completions
dist_bashcompletion_DATA = doc/completion/yoke
zshcompletiondir = $(datadir)/zsh/site-functions
dist_zshcompletion_DATA = doc/completion/_yoke

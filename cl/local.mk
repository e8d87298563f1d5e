# SPDX-License-Identifier: Apache-2.0
# Kernel texts: embedded in the library, and installed as files. build-aux/sources finds
# them.

cldir = $(pkgdatadir)/cl
dist_cl_DATA = $(cl_files)

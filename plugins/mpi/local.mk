# SPDX-License-Identifier: Apache-2.0
# The MPI transport: one source, one plugin per MPI implementation.
if OPENMPI
plugin_LTLIBRARIES += plugins/mpi/yoke_mpi_openmpi.la
endif
if MPICH
plugin_LTLIBRARIES += plugins/mpi/yoke_mpi_mpich.la
endif
plugins_mpi_yoke_mpi_openmpi_la_SOURCES = plugins/mpi/mpi.c
plugins_mpi_yoke_mpi_openmpi_la_CPPFLAGS = $(AM_CPPFLAGS)
plugins_mpi_yoke_mpi_openmpi_la_CFLAGS = $(AM_CFLAGS) $(OPENMPI_CFLAGS)
plugins_mpi_yoke_mpi_openmpi_la_LDFLAGS = $(module_ldflags) -export-symbols-regex '^yoke_mpi$$'
plugins_mpi_yoke_mpi_openmpi_la_LIBADD = $(OPENMPI_LIBS)
plugins_mpi_yoke_mpi_mpich_la_SOURCES = plugins/mpi/mpi.c
plugins_mpi_yoke_mpi_mpich_la_CPPFLAGS = $(AM_CPPFLAGS)
plugins_mpi_yoke_mpi_mpich_la_CFLAGS = $(AM_CFLAGS) $(MPICH_CFLAGS)
plugins_mpi_yoke_mpi_mpich_la_LDFLAGS = $(module_ldflags) -export-symbols-regex '^yoke_mpi$$'
plugins_mpi_yoke_mpi_mpich_la_LIBADD = $(MPICH_LIBS)

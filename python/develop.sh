#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the extension beside a build of libyoke, without a wheel: develop.sh BUILD [PYTHON].
# BUILD is where make ran; the package is then in BUILD/python, for PYTHONPATH. Its pytest suite
# is part of make check.
set -eu
unset CDPATH # cd would print the directory that it finds there
source=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$1" && pwd)
python=${2:-python3}
to=$build/python
nanobind=$("$python" -c 'import nanobind; print(nanobind.include_dir())')
header=$("$python" -c 'import sysconfig; print(sysconfig.get_path("include"))')
suffix=$("$python" -c 'import sysconfig; print(sysconfig.get_config_var("EXT_SUFFIX"))')
mkdir -p "$to/gen" "$to/obj" "$to/yoke"
"$python" "$source/bind.py" "$source/../include" "$to/gen"
cat >"$to/Makefile" <<END
CXXFLAGS = -std=c++17 -O1 -fPIC -fvisibility=hidden -fno-strict-aliasing -DNDEBUG -DNB_COMPACT_ASSERTIONS -Wall -Wextra \\
	-I$nanobind -I$nanobind/../ext/robin_map/include -I$header -I$source/../include -I$source/src -I$to/gen
sources = \$(wildcard $source/src/*.cc) \$(wildcard $to/gen/*.cc)
objects = \$(patsubst %.cc,$to/obj/%.o,\$(notdir \$(sources)))
vpath %.cc $source/src $to/gen
$to/yoke/_core$suffix: \$(objects) $to/obj/nb_combined.o
	\$(CXX) -shared -o \$@ \$^ -L$build/.libs -lyoke -Wl,-rpath,$build/.libs
\$(objects): $source/src/core.h $source/src/module.h $to/gen/docs.h $to/gen/bound.h
$to/obj/%.o: %.cc
	\$(CXX) \$(CXXFLAGS) -c -o \$@ \$<
$to/obj/nb_combined.o:
	\$(CXX) \$(CXXFLAGS) -w -c -o \$@ $nanobind/../src/nb_combined.cpp
END
make -f "$to/Makefile" -j "${JOBS:-2}" -k
for f in "$source"/yoke/*; do
	ln -sfn "$f" "$to/yoke/${f##*/}"
done
mkdir -p "$to/yoke/_prefix/bin" # where a wheel has the command
ln -sf "$build/yoke" "$to/yoke/_prefix/bin/yoke"
ln -sf "$source/yoke_command.py" "$to/"
"$python" -c 'import sys; print(sys.executable)' >"$to/python"
stub=$to/yoke/_core.pyi
[ -n "$(find "$stub" -newer "$to/yoke/_core$suffix" 2>/dev/null)" ] || "$python" "$source/stubs.py" "$to/yoke" "$stub"

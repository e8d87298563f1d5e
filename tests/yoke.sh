# SPDX-License-Identifier: Apache-2.0
# What tests of the command begin with: . "${srcdir:-.}/tests/yoke.sh", before the folder is changed.
yoke=${YOKE:-$PWD/yoke}
[ -x "$yoke" ] || { echo "1..0 # SKIP $yoke is not built"; exit 0; }

# workspace NAME: the test goes on in an empty folder
workspace()
{
	cd "${TMPDIR:-/tmp}" && rm -rf "$1.work" && mkdir "$1.work" && cd "$1.work" || exit 99
}

# easy_text LINES
easy_text()
{
	i=0
	while [ $i -lt "$1" ]; do
		echo "line $((i % 7)) of a text that is easy to learn"
		i=$((i + 1))
	done
}

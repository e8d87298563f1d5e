#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Reports line coverage of a build with --enable-coverage, by directory, and the files with the
# most lines not executed: coverage.sh SRCDIR, in the build directory. coverage.txt lists each
# line not executed. A line compiled several times (kernels, inline functions) counts as executed
# if any of its copies was.
set -eu
: >coverage.txt.new
src=$(cd "$1" && pwd)

find . -name '*.gcda' ! -path './tests/*' ! -path './bench/*' ! -path './examples/*' >coverage.list
[ -s coverage.list ] || { echo 'nothing was counted' >&2; exit 1; }
xargs "${GCOV:-gcov}" -t <coverage.list 2>/dev/null | awk -v src="$src/" -v given="$1/" '
/^ *-: *0:Source:/ {
	file = $0
	sub(/^ *-: *0:Source:/, "", file)
	if (index(file, src) == 1)
		file = substr(file, length(src) + 1)
	else if (index(file, given) == 1)
		file = substr(file, length(given) + 1)
	sub(/^\.\//, "", file)
	ours = file ~ /^(src|backends|plugins|include)\//
	next
}
!ours { next }
{
	n = index($0, ":")
	count = substr($0, 1, n - 1)
	rest = substr($0, n + 1)
	gsub(/[ *]/, "", count)
	if (count == "-")
		next
	line = rest + 0
	key = file SUBSEP line
	if (!(key in seen)) {
		seen[key] = 0
		text[key] = substr(rest, index(rest, ":") + 1)
	}
	if (count !~ /^[#=]/)
		seen[key] = 1
}
END {
	for (key in seen) {
		split(key, part, SUBSEP)
		room = part[1]
		sub(/\/[^\/]*$/, "", room)
		lines[room]++
		all++
		ran[room] += seen[key]
		sum += seen[key]
		if (!seen[key]) {
			missed[part[1]]++
			printf "%s:%05d:%s\n", part[1], part[2], text[key] >>"coverage.txt.new"
		}
	}
	for (room in lines)
		printf "1 %-18s %6d of %6d  %5.1f %%\n", room, ran[room], lines[room],
			100 * ran[room] / lines[room]
	printf "2 %-18s %6d of %6d  %5.1f %%\n", "all", sum, all, 100 * sum / all
	for (file in missed)
		printf "3 %6d  %s\n", missed[file], file
}' >coverage.tmp
sort coverage.txt.new | sed 's/:0*\([0-9]*\):/:\1:/' >coverage.txt
echo 'lines that ran:'
sort coverage.tmp | sed -n 's/^[12] /  /p'
echo 'lines that did not, most of all in (each is in coverage.txt):'
sed -n 's/^3 //p' coverage.tmp | sort -rn | head -n 20
rm -f coverage.list coverage.tmp coverage.txt.new

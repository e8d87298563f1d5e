#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests the includes between files.  Directories of src include only lower ones; files of a directory
# form no cycles; a backend includes only yoke-plugin.h, its own files and backends/gpu, which knows
# no vendor; only commands and tests include the conformance tester.
set -u
. "${srcdir:-.}/tests/tap.sh"
cd "${srcdir:-.}" || exit 99

height()
{
	case $1 in
	base) echo 0 ;;
	kernel | formats) echo 1 ;;
	device | tokenizer) echo 2 ;;
	conform | template | text) echo 3 ;;
	schema) echo 4 ;;
	graph) echo 4 ;;
	ops) echo 5 ;;
	plan) echo 6 ;;
	data | optim | runs) echo 7 ;;
	nn | fit | comm | observe | http) echo 8 ;;
	models) echo 9 ;;
	config | export | engine) echo 10 ;;
	parallel) echo 11 ;;
	train) echo 12 ;;
	report) echo 13 ;;
	live | serve) echo 14 ;;
	tool) echo 15 ;;
	*) echo 99 ;;
	esac
}

# may FROM TO: may files of the directory FROM include those of TO?
may()
{
	[ "$1" = "$2" ] || [ "$(height "$1")" -gt "$(height "$2")" ]
}

# includes FILE ..: a line "file:line path" for each #include
includes()
{
	grep -nH '^[[:space:]]*#[[:space:]]*include[[:space:]]*["<]' /dev/null "$@" 2>/dev/null |
		sed -n 's/^\([^:]*:[0-9]*\):[^"<]*["<]\([^">]*\)[">].*/\1 \2/p'
}

includes_upwards()
{
	includes src/*/"$1"/*.[ch] | while read -r where path; do
		case $path in
		../* | backends/* | plugins/* | tests/*) echo "$where includes $path" ;;
		*/*)
			to=${path%%/*}
			[ ! -d "src/core/$to" ] && [ ! -d "src/lib/$to" ] && [ ! -d "src/app/$to" ] || may "$1" "$to" || echo "$where includes $path"
			;;
		esac
	done
}

# A backend may include files of its own directory and below, of backends/gpu, and of the system, but no
# other file of the project.  Exceptions: plugins/native is a part of two vendors' backends, each of
# which gives it a vendor.h; plugins/mpi is no backend, and its table is declared by comm.
foreign_in_backend()
{
	files=$(find "$1" -name '*.[ch]')
	# shellcheck disable=SC2086
	includes $files | while read -r where path; do
		case $path in
		yoke-plugin.h | config.h) continue ;;
		esac
		here=$(cd "${where%/*}" && cd "$(dirname "$path")" 2>/dev/null && pwd)
		case $here/ in
		"$PWD/$1"/* | "$PWD/backends/gpu/") [ ! -f "$here/${path##*/}" ] || continue ;;
		esac
		case $1:$path in
		plugins/cuda:../native/n[ac]*.h | plugins/rocm:../native/n[ac]*.h | plugins/rocm:../native/products.h | plugins/native:vendor.h | plugins/mpi:comm/mpi_module.h) continue ;;
		esac
		[ -n "$(find include src backends plugins tests -path "*/${path#../}")" ] || continue
		echo "$where includes $path"
	done
}

vendors_in_gpu()
{
	includes backends/gpu/*.[ch] | grep -i -e ' .*cl' -e ' .*cuda' -e ' .*nv' -e ' .*hip' | sed 's/ / includes /'
	grep -nE '\b(cl_[a-z_]+|CL_[A-Z_]+|cl[A-Z][A-Za-z]+|cu[A-Z][A-Za-z]+|hip[A-Z][A-Za-z]+)\b' backends/gpu/*.[ch] |
		grep -v '/\*\|//\|"' || :
}

shared_guards()
{
	sed -n 's/^#ifndef \(YK_[A-Z0-9_]*_H\)$/\1/p' src/*/*/*.h | sort | uniq -d
}

# Calls whose results depend on the locale of the program.  The command sets only LC_CTYPE.
locale_dependent()
{
	grep -nE '(^|[^_[:alnum:]])(strto(d|f|ld)(_l)?|ato[fl]*|strn?casecmp|to(lower|upper)|v[a-z]*printf|(new|use|set)locale|json_(load|dump)[a-z]*) *\(' \
		$(ls src/*/*/*.[ch] | grep -v -e src/app/tool/ -e src/app/live/ -e src/core/base/number.c -e src/core/base/json.c)
	grep -nE '(^|[^_[:alnum:]])(sn|as|f)?(printf|scanf)\(.*%[-+ #0]*[0-9.*]*l?[gefaGEFA]([^[:alnum:]]|$)' \
		$(ls src/*/*/*.[ch] | grep -v -e src/app/tool/ -e src/app/live/)
}

# includes_within DIRECTORY: a line "FROM TO" for each of its files that includes another.  x.c, x.h and
# x_priv.h count as one file.
includes_within()
{
	includes "$1"/*.[ch] | awk -v dir="$1" '
	function base(path) { sub(/.*\//, "", path); sub(/\.[ch]$/, "", path); sub(/_priv$/, "", path); return path }
	{
		from = $1; sub(/:[0-9]*$/, "", from)
		n = split($2, part, "/")
		if (n > 1 && part[n - 1] != last(dir)) next
		if ((getline line < (dir "/" part[n])) < 0) next
		close(dir "/" part[n])
		if (base(from) != base($2)) print base(from), base($2)
	}
	function last(path) { sub(/\/$/, "", path); sub(/.*\//, "", path); return path }' | sort -u
}

# cycles_in DIRECTORY: the includes that are part of a cycle of its files, or between two cycles
cycles_in()
{
	includes_within "$1" | awk -v dir="$1" '
	{ from[$0] = $1; to[$0] = $2 }
	END {
		do { # removes files that include nothing or that nothing includes, until none is left
			removed = 0
			split("", includes); split("", included)
			for (e in from) { includes[from[e]] = 1; included[to[e]] = 1 }
			for (e in from)
				if (!(to[e] in includes) || !(from[e] in included)) {
					delete from[e]
					removed = 1
				}
		} while (removed)
		for (e in from)
			print dir "/" from[e] " includes " to[e]
	}' | sort
}

# Files outside of conform that include it, except the command, which tests and tunes, and capable.c, which
# runs cases to find out how a device computes an op.
conform_in_production()
{
	includes src/*/*/*.[ch] | grep ' conform/' |
		grep -v -e '^src/lib/conform/' -e '^src/app/tool/' -e '^src/lib/fit/tune\.c' -e '^src/app/config/capable\.c' |
		sed 's/ / includes /'
}

foreign_in_abi()
{
	includes include/yoke-plugin.h | grep -v -e ' stdint\.h$' -e ' stddef\.h$' |
		sed 's/ / includes /'
}

for folder in src/*/*/; do
	name=$(basename "$folder")
	[ "$(height "$name")" -lt 99 ] || verdict "$folder has a height" "$folder: unknown directory"
	verdict "$folder includes only lower directories" "$(includes_upwards "$name")"
	verdict "$folder has no cycles of files" "$(cycles_in "${folder%/}")"
done
for folder in backends/* plugins/*; do
	[ ! -d "$folder" ] ||
		verdict "$folder includes yoke-plugin.h and its own" "$(foreign_in_backend "$folder")"
done
for folder in backends/* plugins/*; do
	[ ! -d "$folder" ] || verdict "$folder has no cycles of files" "$(cycles_in "$folder")"
done
verdict "only commands and tests include the conformance tester" "$(conform_in_production)"
verdict "backends/gpu knows no vendor" "$(vendors_in_gpu)"
verdict "no two headers of src share a guard" "$(shared_guards)"
verdict "the library does not depend on the locale" "$(locale_dependent)"
verdict "yoke-plugin.h includes stdint.h and stddef.h" "$(foreign_in_abi)"
echo "1..$count"

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests the layering of includes: directories include only lower ones; a backend includes only
# yoke-plugin.h and possibly backends/gpu, which knows no vendor; no two headers of src include
# each other.
set -u
. "${srcdir:-.}/tests/tap.sh"
cd "${srcdir:-.}" || exit 99

height()
{
	case $1 in
	base) echo 0 ;;
	kernel | formats | text) echo 1 ;;
	device) echo 2 ;;
	conform) echo 3 ;;
	graph) echo 4 ;;
	ops) echo 5 ;;
	plan) echo 6 ;;
	data | optim | runs) echo 7 ;;
	nn | fit | comm | observe) echo 8 ;;
	models) echo 9 ;;
	train) echo 10 ;;
	report) echo 11 ;;
	live) echo 12 ;;
	tool) echo 13 ;;
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

up_from_room()
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

# What lies in the backend's folder or one below it, in backends/gpu, and what the system has is fine; what
# else the project has is not.  plugins/native is a part of the backends of two vendors, each of which gives it a
# vendor.h; plugins/mpi is no backend, its table is comm's.
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

guards_that_two_have()
{
	sed -n 's/^#ifndef \(YK_[A-Z0-9_]*_H\)$/\1/p' src/*/*/*.h | sort | uniq -d
}

# Calls whose numbers or letters depend on the locale of a program.  The command sets none but that of its characters.
of_the_locale()
{
	grep -nE '(^|[^_[:alnum:]])(strto(d|f|ld)(_l)?|ato[fl]*|strn?casecmp|to(lower|upper)|v[a-z]*printf|(new|use|set)locale|json_(load|dump)[a-z]*) *\(' \
		$(ls src/*/*/*.[ch] | grep -v -e src/app/tool/ -e src/app/live/ -e src/core/base/number.c -e src/core/base/json.c)
	grep -nE '(^|[^_[:alnum:]])(sn|as|f)?(printf|scanf)\(.*%[-+ #0]*[0-9.*]*l?[gefaGEFA]([^[:alnum:]]|$)' \
		$(ls src/*/*/*.[ch] | grep -v -e src/app/tool/ -e src/app/live/)
}

foreign_in_abi()
{
	includes include/yoke-plugin.h | grep -v -e ' stdint\.h$' -e ' stddef\.h$' |
		sed 's/ / includes /'
}

for folder in src/*/*/; do
	room=$(basename "$folder")
	[ "$(height "$room")" -lt 99 ] || verdict "$folder has a height" "$folder: unknown directory"
	verdict "$folder includes only lower directories" "$(up_from_room "$room")"
done
for folder in backends/* plugins/*; do
	[ ! -d "$folder" ] ||
		verdict "$folder includes yoke-plugin.h and its own" "$(foreign_in_backend "$folder")"
done
verdict "backends/gpu knows no vendor" "$(vendors_in_gpu)"
verdict "each header of src has a guard of its own" "$(guards_that_two_have)"
verdict "numbers and letters of the library do not depend on a locale" "$(of_the_locale)"
verdict "yoke-plugin.h includes stdint.h and stddef.h" "$(foreign_in_abi)"
echo "1..$count"

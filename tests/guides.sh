#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests the guides: every C program in them compiles without a warning and runs; every relative
# link and anchor exists; the op table in doc/plugins.md agrees with yoke-plugin.h and with the
# devices; each source directory has a README.md whose files exist; lines of C have 100 columns;
# `make html` renders everything.
set -u
. "${srcdir:-.}/tests/yoke.sh"
. "${srcdir:-.}/tests/tap.sh"
. "${srcdir:-.}/tests/built.sh"
guides=$(cd "$source" && echo README.md doc/*.md)
readmes=$(cd "$source" && echo src/README.md backends/README.md tests/fake_gpu/README.md src/*/*/README.md backends/*/README.md backends/cpu/contract/README.md plugins/README.md plugins/*/README.md cl/README.md \
	tests/README.md bench/README.md python/README.md)

# ---- programs ----

# programs FILE PREFIX: writes its ```c blocks to PREFIX1.c, PREFIX2.c ..
programs()
{
	awk -v prefix="$2" '/^```c$/ { n++; inside = 1; next } /^```/ { inside = 0 } inside { print > (prefix n ".c") }' "$1"
}

printf 'a,b\n1,2\n3,4\n5,6\n7,8\n' >book.csv # that doc/data.md reads
for guide in $guides; do
	name=$(basename "$guide" .md)
	programs "$source/$guide" "$name"
	for program in "$name"[0-9]*.c; do
		[ -e "$program" ] || continue
		verdict "$guide: ${program%.c} compiles without a warning" "$(compiles "$program" "${program%.c}")"
		verdict "$guide: ${program%.c} runs" "$(YOKE_BACKEND=cpu LD_LIBRARY_PATH=$build/.libs "./${program%.c}" >out 2>&1 ||
			{ echo "exit code $?"; tail -n 5 out; })"
	done
done
verdict "doc/c.md has programs" "$([ -e c5.c ] || ls)"
verdict "the results that doc/c.md gives are printed" "$(for n in 1 2; do
	printed=$(YOKE_BACKEND=cpu LD_LIBRARY_PATH=$build/.libs "./c$n" 2>&1)
	grep -qF "It prints \`$printed\`." "$source/doc/c.md" || echo "c$n: $printed"
done)"

# ---- links ----

# links FILE: prints line, path and anchor of each relative link outside of code
links()
{
	awk '
		/^```/ { fenced = !fenced; next }
		fenced || /^\t/ { next }
		{
			gsub(/`[^`]*`/, "")
			while (match($0, /\]\([^)]*\)/)) {
				link = substr($0, RSTART + 2, RLENGTH - 3)
				$0 = substr($0, RSTART + RLENGTH)
				if (link ~ /^[a-z]+:/)
					continue
				path = anchor = link
				sub(/#.*/, "", path)
				if (!sub(/^[^#]*#/, "", anchor))
					anchor = ""
				print NR "|" path "|" anchor
			}
		}' "$1"
}

# anchors FILE: prints the anchors of its headings, as GitHub makes them
anchors()
{
	awk '/^```/ { fenced = !fenced } !fenced && /^#+ / { sub(/^#+ /, ""); print }' "$1" | tr '[:upper:]' '[:lower:]' |
		sed 's/[^a-z0-9 _-]//g; s/ /-/g'
}

# broken FILE ..: prints broken links; files are relative to the source
broken()
{
	for file; do
		links "$source/$file" | while IFS='|' read -r line path anchor; do
			target=$source/$file
			[ -z "$path" ] || target=$(dirname "$source/$file")/$path
			if [ ! -e "$target" ]; then
				echo "$file:$line: $path is not there"
			elif [ -n "$anchor" ] && ! anchors "$target" | grep -qx -- "$anchor"; then
				echo "$file:$line: $path has no heading #$anchor"
			fi
		done
	done
}
# shellcheck disable=SC2086 # words
verdict "the links of $(echo $guides | wc -w) guides lead somewhere" "$(broken $guides $readmes)"
verdict "README.md links to each guide" "$(for guide in $guides; do
	[ "$guide" = README.md ] || grep -qF "($guide)" "$source/README.md" || echo "$guide"
done)"
mkdir "$work/links" && printf '# A b\n[x](#a-b) [y](none.md)\n[z](#c)\n' >"$work/links/new.md"
verdict "a link that leads nowhere is found" "$(source=$work/links
	[ "$(broken new.md | cut -d' ' -f1 | tr '\n' ' ')" = "new.md:2: new.md:3: " ] || broken new.md)"

# ---- the table of ops ----

awk -F ' *\\| *' '/^## / { on = /^## Table of ops/ } on && $2 ~ /^[A-Z][A-Z0-9_]*$/ { print $2, $3, $7 }' "$source/doc/plugins.md" |
	sort >table
sed -n '/define YOKE_OP_CODES/,/^enum/s/^\tX(\([A-Z_0-9]*\), \([0-9]*\)).*/\1 \2/p' "$source/include/yoke-plugin.h" | sort >header
verdict "doc/plugins.md has the $(wc -l <header) ops of yoke-plugin.h" "$([ "$(wc -l <header)" -gt 30 ] || cat header
	awk '{ print $1, $2 }' table | diff - header)"
sed 's/ all$/ f32 f64 f16 bf16 i8 u8 i32 i64 bool/; s/ numeric$/ f32 f64 f16 bf16 i8 u8 i32 i64/; s/ float$/ f32 f64 f16 bf16/' table |
	awk 'NF > 2 { $2 = ""; print tolower($0) }' | tr -s ' ' >documented
# Ops that the CPU computes directly or by other ops: where the command prints "-" there is no such
# op.
YOKE_BACKEND=cpu "$yoke" info --dtypes 2>/dev/null | awk '
	$1 == "op" && $2 == "f32" { on = 1; n = NF; for (i = 2; i <= n; i++) dtype[i] = $i; next }
	on && NF == n { line = $1; for (i = 2; i <= n; i++) if ($i != "-") line = line " " dtype[i]; print line }' | sort >computed
verdict "and their dtypes are those of \`yoke info --dtypes\`" "$([ -s computed ] || echo "it has none"
	sort documented | diff - computed)"

# ---- directories ----

verdict "every directory of the source has a README.md of 60 lines at most" "$(cd "$source" || exit
	for folder in src/*/*/ backends/*/ plugins/ plugins/*/ cl/ tests/ bench/ python/; do
		[ -e "${folder}local.mk" ] || [ "$folder" = plugins/ ] || continue
		[ -s "${folder}README.md" ] || { echo "${folder}README.md"; continue; }
		[ "$(wc -l <"${folder}README.md")" -le 60 ] || wc -l "${folder}README.md"
	done)"
# Names of source files in quotes; a pattern stands for its matches, NAME for any name.
verdict "files named in the READMEs of directories exist" "$(cd "$source" || exit
	for readme in $readmes; do
		grep -o '`[a-zA-Z0-9_/*-]*\.\(c\|h\|cl\|sh\|py\)`' "$readme" | tr -d '\140' | while read -r name; do
			case $name in
			*NAME*) continue ;;
			esac
			set -- "$(dirname "$readme")"/$name
			[ -e "$1" ] || [ -e "$name" ] || [ -e "include/$name" ] || ls src/*/"$name" >/dev/null 2>&1 || echo "$readme: $name"
		done
	done)"
verdict "doc/architecture.md has 400 lines at most" "$([ "$(wc -l <"$source/doc/architecture.md")" -le 400 ] || echo no)"

# ---- sources ----

# Lines with a string may be longer, so that messages are found by searching for them.
verdict "lines of C and of kernels without strings have 100 columns at most" "$(cd "$source" &&
	find include src backends plugins cl bench examples tests ! -path 'tests/models/*' \( -name '*.[ch]' -o -name '*.cl' \) -exec awk '
		/"/ { next }
		{
			width = 0
			n = split($0, part, "\t")
			for (i = 1; i < n; i++)
				width += 8 + length(part[i]) - (width + length(part[i])) % 8
			if (width + length(part[n]) > 100)
				print FILENAME ":" FNR
		}' {} +)"

# ---- pages ----

if [ -n "$(made PANDOC)$(made MANDOC)" ]; then
	mkdir pages
	cp "$build"/doc/yoke*.[137] pages
	verdict "the documents become web pages" "$(sh "$source/doc/site.sh" "$source" "$(made PANDOC)" "$(made MANDOC)" html pages/* 2>&1 |
		grep -v 'missing date\|mandoc: outdated')"
	verdict "whose links lead somewhere" "$(cd html && find . -name '*.html' | while read -r page; do
		grep -o 'href="[^":#]*[#"]' "$page" | sed 's/^href="//; s/["#]$//' | sort -u | while read -r path; do
			[ -z "$path" ] || [ -e "$(dirname "$page")/$path" ] || echo "$page: $path"
		done
	done)"
	verdict "and the index has each guide and page" "$(for file in $guides; do
		grep -qF "href=\"${file%.md}.html\"" html/index.html || echo "$file"
	done
	for page in pages/*; do
		grep -qF "href=\"man/$(basename "$page").html\"" html/index.html || echo "$page"
	done)"
else
	skip 'the documents become web pages' 'neither pandoc nor mandoc'
fi
echo "1..$count"
exit $failed

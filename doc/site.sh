#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Writes the guides and the manual pages as web pages: site.sh SOURCE PANDOC MANDOC OUT PAGE ..
# OUT mirrors the source tree, so that relative links between the guides hold; a link to another file of the source gets a copy
# of it.  PANDOC or MANDOC may be empty, but not both: guides that mandoc renders become manual pages first.
set -eu
source=$1 pandoc=$2 mandoc=$3 out=$4
shift 4

rm -rf "$out"
mkdir -p "$out/doc" "$out/man"

# html TITLE: the page in stdin, which is Markdown, by pandoc
with_pandoc()
{
	sed 's/\(\][(][^)#:]*\)\.md\([)#]\)/\1.html\2/g' |
		"$pandoc" -s -f gfm -t html --metadata "pagetitle=$1" -V "header-includes=<style>body{max-width:60em}</style>"
}

# guide FILE: a Markdown file of the source, as a page at the same place
guide()
{
	to=$out/${1%.md}.html
	mkdir -p "$(dirname "$to")"
	if [ -n "$pandoc" ]; then
		with_pandoc "yoke: $1" <"$source/$1" >"$to"
	else
		sh "$source/doc/guide.sh" "$source/$1" "$(basename "$1" .md)" 7 >"$out/page.7"
		"$mandoc" -T html "$out/page.7" >"$to"
		rm "$out/page.7"
	fi
}

# What a guide links to, relative to the source, without anchors.
targets()
{
	folder=$(dirname "$1")
	sed -n 's/](/\n](/gp' "$source/$1" | sed -n 's/^](\([^)#:]*\)[^)]*).*/\1/p' | while read -r path; do
		[ -n "$path" ] || continue
		echo "$folder/$path" | sed 's|^\./||; s|^[a-z]*/\.\./||'
	done
}

guides=$(cd "$source" && echo README.md doc/*.md)
linked=$(for file in $guides; do targets "$file"; done | sort -u)
for file in $linked; do
	case " $(echo $guides) " in
	*" $file "*) ;;
	*)
		case $file in
		*.md) guides="$guides $file" ;;
		*)
			mkdir -p "$out/$(dirname "$file")"
			cp "$source/$file" "$out/$file"
			;;
		esac
		;;
	esac
done
for file in $guides; do
	guide "$file"
done
for page; do
	to=$out/man/$(basename "$page").html
	if [ -n "$mandoc" ]; then
		"$mandoc" -T html -O man=%N.%S.html "$page" >"$to"
	else
		"$pandoc" -s -f man -t html --metadata "pagetitle=$(basename "$page")" "$page" >"$to"
	fi
done

{
	echo '<!DOCTYPE html><html><head><meta charset="utf-8"><title>yoke</title></head><body><h1>yoke</h1><h2>Guides</h2><ul>'
	for file in $guides; do
		title=$(sed -n 's/^# //p' "$source/$file" | sed -n '1s/&/\&amp;/g; 1s/</\&lt;/g; 1p')
		echo "<li><a href=\"${file%.md}.html\">$title</a></li>"
	done
	echo '</ul><h2>Manual pages</h2><ul>'
	for page; do
		name=$(basename "$page")
		about=$(sed -n '/^\.SH NAME/{n;p;}' "$page" | sed 's/.* \\- //; s/\\-/-/g; s/\\(aq/'"'"'/g')
		echo "<li><a href=\"man/$name.html\">${name%.*}(${name##*.})</a>: $about</li>"
	done
	echo '</ul></body></html>'
} >"$out/index.html"

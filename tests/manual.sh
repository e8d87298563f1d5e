#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests the manual pages of the headers: each lists every function of its header and, rendered,
# keeps lines of code, items of lists and tables, and the lines of structs and enums separate
# instead of filling them into paragraphs.
set -u
build=$PWD
. "${srcdir:-.}/tests/tap.sh"
cd "${srcdir:-.}" && source=$PWD || exit 99

# Functions of a header: what stands before the first parenthesis of what YOKE_API begins.
functions()
{
	sed -n 's/^YOKE_API [^(]*[ *]\(yoke_[a-z0-9_]*\)(.*/\1/p' "$1"
}

# render PAGE: as plain text so wide that no line of a header is longer; what the renderer complains of is in $complaints.
complaints=$(mktemp) && text=$(mktemp) || exit 99
trap 'rm -f "$complaints" "$text"' EXIT
if groff -v >/dev/null 2>&1; then
	render() { groff -ww -t -man -Tascii -P-cbou -rLL=160n "$1"; }
elif command -v mandoc >/dev/null 2>&1; then
	render() { mandoc -Tascii -O width=160 "$1" | sed 's/.\x08//g'; }
else
	render() { false; }
fi

# Lines of a header that are to be lines of the page, without what is before and after them: "whole" the line is this, "begins"
# it begins with it.
wanted()
{
	awk '
	function want(kind, text) {
		gsub(/\t/, "    ", text)
		gsub(/^ +| +$/, "", text)
		if (text != "")
			print FNR " " kind " " text
	}
	/^\/\/\t/ { want("whole", substr($0, 4)) }
	/^\/\/   [^ ]/ { split($0, word, " "); want("begins", word[2]) }
	/^(struct|enum)( .*)? \{[^}]*$/ { inside = 1 }
	inside { want("whole", $0) }
	/^}/ { inside = 0 }
	/^enum .*\}/ { sub(/[ \t]*\/\/.*/, ""); want("whole", $0) }' "$1"
}

# Which of them are not there.  Blanks within lines of the page are one each, as where it sets columns.
missing()
{
	render "$2" >"$text" 2>"$complaints" || return
	wanted "$1" | awk -v page="$text" '
	BEGIN {
		while ((getline line <page) > 0) {
			gsub(/^ +| +$/, "", line)
			is[line] = 1
			split(line, word, " ")
			begins[word[1]] = 1
		}
	}
	{
		number = $1
		kind = $2
		sub(/^[0-9]+ [a-z]+ /, "")
		if (kind == "whole" ? !($0 in is) : !($0 in begins))
			print "line " number ": " $0
	}' | head -5
	head -3 "$complaints"
}

for header in include/yoke*.h; do
	name=$(basename "$header" .h)
	[ "$name" != yoke-plugin ] || continue # doc/plugins.md is its page
	if [ ! -f "$build/doc/$name.3" ]; then
		verdict "$name.3" "it is not made"
		continue
	fi
	verdict "$name.3 has the $(functions "$header" | wc -l) functions of $header" "$(
		[ "$(functions "$header" | wc -l)" -eq "$(grep -c '^YOKE_API' "$header")" ] || echo "YOKE_API that is no function"
		functions "$header" | while read -r f; do
			grep -q "^\.B .*[ *]$f(" "$build/doc/$name.3" || echo "$f is not there"
		done)"
	if render "$build/doc/$name.3" >/dev/null 2>&1; then
		verdict "$name.3 shows $(wanted "$header" | wc -l) lines of code, lists and structs as they are" "$(
			missing "$header" "$build/doc/$name.3")"
	else
		skip "$name.3 rendered" 'neither groff nor mandoc renders it'
	fi
done
echo "1..$count"
exit $failed

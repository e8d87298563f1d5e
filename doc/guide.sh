#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Converts a guide from Markdown to a manual page: guide.sh FILE.md PAGE SECTION >PAGE.SECTION
# It knows the Markdown of doc/: headings, paragraphs, lists, tables, fenced and tab-indented blocks, `code`, **bold** and
# [links](target), of which the text is kept.  The first heading describes the page.
set -eu

awk -v page="$2" -v section="$3" -v source="$(basename "$1")" '
function safe(text) {
	gsub(/\\/, "\\e", text)
	gsub(/-/, "\\-", text)
	gsub(/\047/, "\\(aq", text)
	gsub(/\^/, "\\(ha", text)
	gsub(/~/, "\\(ti", text)
	return text
}
# A line that begins with a dot would be a request.
function guarded(text) {
	return text ~ /^\./ ? "\\&" text : text
}
# Inline markup.  Code is in bold; of a link its text is kept.
function inline(text,    out, n, part, i) {
	while (match(text, /\[[^]]*\]\([^)]*\)/)) {
		out = substr(text, RSTART + 1, RLENGTH - 1)
		sub(/\]\(.*/, "", out)
		text = substr(text, 1, RSTART - 1) out substr(text, RSTART + RLENGTH)
	}
	n = split(text, part, "`")
	out = ""
	for (i = 1; i <= n; i++) {
		part[i] = safe(part[i])
		if (i % 2)
			while (match(part[i], /\*\*[^*]*\*\*/))
				part[i] = substr(part[i], 1, RSTART - 1) "\\fB" substr(part[i], RSTART + 2, RLENGTH - 4) "\\fR" \
					substr(part[i], RSTART + RLENGTH)
		out = out (i % 2 ? part[i] : "\\fB" part[i] "\\fR")
	}
	gsub(/^ +| +$/, "", out)
	return guarded(out)
}
function end_block() {
	if (block)
		print ".fi\n.RE"
	block = 0
}
function end_table() {
	if (!table)
		return
	if (table == 1)
		print ".TE"
	if (table == 2)
		print ".PP"
	fresh = table == 2
	table = 0
}
function begin_block() {
	if (!block)
		print (fresh ? "" : ".PP\n") ".RS\n.nf"
	fresh = 0
	block = 1
}
# A table of two or three columns is one; of a wider one each row is a tagged paragraph with the columns by name.
function row(line,    cell, n, i, text) {
	gsub(/\\\|/, "\001", line)
	sub(/^\| */, "", line)
	sub(/ *\|$/, "", line)
	n = split(line, cell, / *\| */)
	for (i = 1; i <= n; i++)
		gsub(/\001/, "|", cell[i])
	if (!table) {
		columns = n
		for (i = 1; i <= n; i++)
			head[i] = inline(cell[i])
		table = n > 3 ? 2 : 1
		if (table == 1) {
			printf "%s.TS\nallbox tab(@);\n", fresh ? "" : ".PP\n"
			text = n == 3 ? "lb lb lbx\nl l lx." : "lb lbx\nl lx."
			print text
		} else {
			return
		}
	}
	text = ""
	for (i = 2; i <= columns && table == 2; i++)
		if (i <= n && cell[i] != "")
			text = text (text == "" ? "" : ";\n") head[i] ": " inline(cell[i])
	if (table == 2) {
		print ".TP\n\\fB" inline(cell[1]) "\\fR\n" (text == "" ? "\\&" : text ".")
		return
	}
	for (i = 1; i <= columns; i++)
		text = text (i > 1 ? "@" : "") "T{\n" (i > n || cell[i] == "" ? "\\&" : inline(cell[i])) "\nT}"
	print text
}
BEGIN {
	printf "\047\\\" t\n.\\\" SPDX-License-Identifier: Apache-2.0\n.\\\" Made by doc/guide.sh from doc/%s.\n", source
}
/^```/ {
	end_table()
	if (fenced)
		end_block()
	else
		begin_block()
	fenced = !fenced
	next
}
fenced || /^\t/ {
	end_table()
	begin_block()
	if (!fenced)
		sub(/^\t/, "")
	gsub(/\t/, "    ")
	print guarded(safe($0))
	next
}
/^$/ { blank = 1; next }
{ end_block() }
/^# / {
	sub(/^# /, "")
	name = page
	gsub(/-/, "\\-", name)
	printf ".TH %s %s \"\" \"yoke\" \"Guides\"\n.nh\n.ad l\n", toupper(name), section
	printf ".SH NAME\n%s \\- %s\n.SH DESCRIPTION\n", name, tolower(substr($0, 1, 1)) inline(substr($0, 2))
	blank = 0
	fresh = 1
	next
}
/^##+ / {
	end_table()
	sub_heading = /^###/
	sub(/^#+ /, "")
	print (sub_heading ? ".SS " : ".SH ") (sub_heading ? inline($0) : toupper(inline($0)))
	blank = 0
	fresh = 1
	next
}
/^\|[-| ]+\|$/ { next }
/^\|/ { row($0); blank = fresh = 0; next }
{ end_table() }
/^(-|[0-9]+\.) / {
	mark = /^-/ ? "\\(bu" : $1
	sub(/^[^ ]+ /, "")
	print ".IP " mark " 4\n" inline($0)
	blank = fresh = 0
	next
}
{
	if (blank && !fresh && !/^  /)
		print ".PP"
	blank = fresh = 0
	print inline($0)
}
END { end_block(); end_table() }
' "$1"

cat <<'END'
.SH SEE ALSO
.BR yoke (1),
.BR yoke (3),
.BR yoke\-settings (7)
END

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Writes a manual page of the library out of a header: library.sh yoke.h >yoke.3
# A line `// ---- title ----` begins a section; what is declared after a comment, up to a blank
# line or the next comment, is described by it.  In comments, lines that begin with a tab are code, and lines that are indented
# by spaces are rows of a list, or with three columns of a table.
set -eu
name=$(basename "$1" .h)
case $name in
yoke) about='a library that trains and runs neural networks' ;;
yoke-observe) about='profiles, memory and telemetry of what the library does' ;;
yoke-cube) about='hyperspectral cubes of the library' ;;
yoke-data) about='datasets and loaders of the library' ;;
yoke-nn) about='modules and layers of the library' ;;
yoke-dist) about='ranks of the library: many devices, and what they do together' ;;
yoke-fit) about='the training loop of the library' ;;
yoke-linalg) about='linear algebra of the library' ;;
yoke-math) about='special functions, searching, scattering and losses of the library' ;;
yoke-op) about='operations of an application'\''s own' ;;
yoke-optim) about='optimizers of the library' ;;
yoke-pipeline) about='statistics of streams and pipelines of the library' ;;
yoke-model) about='pretrained models' ;;
yoke-quant) about='quantized weights' ;;
yoke-engine) about='serving of language models: continuous batching' ;;
yoke-serve) about='serving functions of arrays by HTTP' ;;
yoke-run) about='records of runs' ;;
yoke-tokenizer) about='tokenizers of published models' ;;
esac
page=$(echo "$name" | sed 's/-/\\-/')
title=$(echo "$page" | tr '[:lower:]' '[:upper:]')

cat <<END
'\\" t
.\\" SPDX-License-Identifier: Apache-2.0
.\\" Made by doc/library.sh from include/$name.h.
.TH $title 3 "" "yoke" "Library Functions"
.nh
.ad l
.SH NAME
$page \\- $about
.SH SYNOPSIS
.nf
.B #include <$name.h>
.PP
.B cc program.c \$(pkg\\-config \\-\\-cflags \\-\\-libs yoke)
.fi
END

awk '
function safe(text) {
	gsub(/\\/, "\\e", text)
	gsub(/-/, "\\-", text)
	gsub(/\047/, "\\(aq", text)
	gsub(/`/, "\\(ga", text)
	gsub(/\^/, "\\(ha", text)
	gsub(/~/, "\\(ti", text)
	if (text ~ /^\./)
		text = "\\&" text
	return text
}
function trimmed(text) {
	gsub(/^ +| +$/, "", text)
	return text
}
function put(text) {
	doc = doc (doc == "" ? "" : "\n") text
}
# A paragraph, within what is tagged by declarations if there are any.
function paragraph() {
	put(tags ? ".IP" : ".PP")
}

# Lines of code begin with a tab; empty ones among them stay.  From line i on; returns the next.
function code(i,    empty, text) {
	paragraph()
	put(".nf")
	for (; i <= comments && (comment[i] == "" || comment[i] ~ /^\t/); i++) {
		empty = i
		while (empty <= comments && comment[empty] == "")
			empty++
		if (empty > comments || comment[empty] !~ /^\t/)
			break
		text = comment[i]
		gsub(/\t/, "    ", text)
		put(text == "" ? "" : "    " safe(substr(text, 5)))
	}
	put(".fi")
	return i
}

# Indented lines are a list: a row begins at the least indent, its text where most lines that go on with one do.
function list(i,    from, at, rows, most, wide, k, gap, tag, text, wider) {
	split("", many)
	from = i
	rows = most = wide = at = wider = 0
	for (; i <= comments && comment[i] ~ /^  /; i++) {
		match(comment[i], /^ +/)
		if (RLENGTH == 2 && match(comment[i], /[^ ]  +/))
			RLENGTH += RSTART - 1
		else if (RLENGTH == 2)
			continue
		else
			many[RLENGTH] += 100 # a line that goes on is sure of it
		if (++many[RLENGTH] > most) {
			most = many[RLENGTH]
			at = RLENGTH
		}
	}
	for (k = from; k < i; k++) {
		text = comment[k]
		if (text ~ /^   /) {
			body[rows] = body[rows] "\n" safe(trimmed(text))
			continue
		}
		gap = match(substr(text, 3), /[^ ]  +/) ? RSTART + RLENGTH + 1 : length(text)
		if (at && substr(text, at, 1) == " " && substr(text, at + 1, 1) != " ")
			gap = at
		else if (gap < at) # within what stands before the text, which the next line has
			gap = length(text)
		tag = trimmed(substr(text, 1, gap))
		head[++rows] = tag
		body[rows] = safe(trimmed(substr(text, gap + 1)))
		wide += tag ~ /[^ ]  +[^ ]/
		wider = length(tag) > wider ? length(tag) : wider
	}
	if (2 * wide > rows)
		table(rows)
	else
		tagged(rows, wider < 20 ? wider + 2 : 12)
	return i
}
function tagged(rows, width,    k) {
	put(".RS")
	for (k = 1; k <= rows; k++) {
		put(".TP " width)
		put(".B " safe(head[k]))
		put(body[k] == "" ? "\\&" : body[k])
	}
	put(".RE")
	paragraph()
}
function table(rows,    k, left, right) {
	put(".TS")
	put("tab(@);")
	put("lb l lx.")
	for (k = 1; k <= rows; k++) {
		left = head[k]
		right = ""
		if (match(left, /  +/)) {
			right = substr(left, RSTART + RLENGTH)
			left = substr(left, 1, RSTART - 1)
		}
		put(safe(left) "@" safe(right) "@T{")
		put(body[k])
		put("T}")
	}
	put(".TE")
	paragraph()
}

# What comments say of the declarations that are gathered.
function describe(    i) {
	doc = ""
	for (i = 1; i <= comments;) {
		if (comment[i] == "") {
			if (i < comments && comment[i + 1] !~ /^(\t|  )/)
				paragraph()
			i++
		} else if (comment[i] ~ /^\t/) {
			i = code(i)
		} else if (comment[i] ~ /^  /) {
			i = list(i)
		} else {
			put(safe(comment[i++]))
		}
	}
	comments = 0
}
# A group of declarations of which one has several lines is set as it is, with what is said of it indented; else they are tags.
function flush(    i, whole) {
	for (i = 1; i <= n; i++)
		whole = whole || verbatim[i]
	if (whole)
		print ".PP\n.nf"
	for (i = 1; i <= n; i++) {
		if (!whole)
			print (i == 1 ? ".TP" : ".TQ")
		print (verbatim[i] ? declared[i] : ".B " declared[i])
	}
	tags = n && !whole
	describe()
	if (whole)
		print ".fi\n.RS" (doc == "" ? "" : "\n" doc) "\n.RE"
	else if (n || doc != "")
		print (n || fresh ? "" : ".PP\n") (doc == "" ? "\\&" : doc)
	if (n || doc != "")
		fresh = 0
	n = 0
}
function section(title) {
	print ".SH " title
	fresh = 1
}
function note(text) {
	sub(/^[ \t]*\/\/ ?/, "", text)
	comment[++comments] = text
}
function declare(text, as_it_is) {
	declared[++n] = text
	verbatim[n] = as_it_is
}
/^#ifndef YOKE_.*H$/ { flush(); started = 1; next }
FNR < 2 { next } # the licence
!started { if (FNR == 2) section("DESCRIPTION"); note($0); next }
/^\/\/ ---- .* ----$/ {
	flush()
	sub(/^\/\/ ---- /, "")
	sub(/ ----$/, "")
	section(toupper($0))
	next
}
/^\/\// { if (n) flush(); note($0); next }
/^[ \t]*$/ { flush(); next }
/^#define YOKE_(.*_?H|API)$/ || /^#define YOKE_API/ || /^#if/ || /^#e/ || /^#include/ || /^extern "C"/ || /^}$/ { next }
# of several lines: structs, enums, and macros that go on
/^(struct|enum)( .*)? \{[^}]*$/ || /^#define.*\\$/ { text = ""; inside = /^#/ ? "\\\\$" : "^};"; }
inside {
	line = $0
	gsub(/\t/, "    ", line)
	text = text (text == "" ? "" : "\n") safe(line)
	if (inside == "^};" ? $0 ~ /^};/ : $0 !~ /\\$/) {
		inside = ""
		declare(text, 1)
	}
	next
}
/^typedef|^#define|^enum/ {
	said = ""
	if (match($0, /[ \t]*\/\/.*/)) {
		said = substr($0, RSTART)
		$0 = substr($0, 1, RSTART - 1)
	}
	declare(safe($0), 0)
	if (said != "")
		note(said)
	next
}
/^YOKE_API/ { text = ""; open = 1 }
open {
	line = $0
	sub(/^YOKE_API /, "", line)
	sub(/^[ \t]+/, " ", line)
	said = ""
	if (match(line, /[ \t]*\/\/.*/)) {
		said = substr(line, RSTART)
		line = substr(line, 1, RSTART - 1)
	}
	text = text line
	if (text ~ /;$/) {
		declare(safe(text), 0)
		open = 0
	}
	if (said != "")
		note(said)
}
END { flush() }
' "$1"

cat <<'END'
.SH SEE ALSO
.BR yoke (1),
.BR yoke\-plugin (7),
.BR yoke\-settings (7)
END

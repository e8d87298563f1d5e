#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Writes a manual page of the library out of a header: library.sh yoke.h >yoke.3
# A line `// ---- title ----` begins a section; what is declared behind a comment, up to a blank
# line or the next comment, is described by it.
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
yoke-math) about='special functions, searching, scattering and losses of the library' ;;
yoke-op) about='operations of an application'\''s own' ;;
yoke-optim) about='optimizers of the library' ;;
yoke-pipeline) about='statistics of streams and pipelines of the library' ;;
yoke-run) about='records of runs' ;;
esac
page=$(echo "$name" | sed 's/-/\\-/')
title=$(echo "$page" | tr '[:lower:]' '[:upper:]')

cat <<END
.\\" SPDX-License-Identifier: Apache-2.0
.\\" Made by doc/library.sh from include/$name.h.
.TH $title 3 "" "yoke" "Library Functions"
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
	if (text ~ /^[.\x27]/)
		text = "\\&" text
	return text
}
# What is gathered: declarations, then what is said about them.
function flush(i) {
	for (i = 1; i <= n; i++) {
		print (i == 1 ? ".TP" : ".TQ")
		print (verbatim[i] ? ".nf\n" declared[i] "\n.fi" : ".B " declared[i])
	}
	if (n && doc == "")
		doc = "\\&"
	if (doc != "")
		print (n || fresh ? doc : ".PP\n" doc)
	if (n || doc != "")
		fresh = 0
	n = 0
	doc = ""
}
function section(title) {
	print ".SH " title
	fresh = 1
}
function note(text) {
	sub(/^[ \t]*\/\/ ?/, "", text)
	doc = doc (doc == "" ? "" : "\n") (text == "" ? ".PP" : safe(text))
}
/^#ifndef YOKE_.*H$/ { flush(); body = 1; next }
FNR < 2 { next } # the licence
!body { if (FNR == 2) section("DESCRIPTION"); note($0); next }
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
/^typedef|^#define/ {
	comment = ""
	if (match($0, /[ \t]*\/\/.*/)) {
		comment = substr($0, RSTART)
		$0 = substr($0, 1, RSTART - 1)
	}
	declared[++n] = safe($0)
	verbatim[n] = 0
	if (comment != "")
		note(comment)
	next
}
/^struct .* \{$/ { text = safe($0); inside = 1; next }
inside {
	gsub(/\t/, "    ")
	text = text "\n" safe($0)
	if (/^};/) {
		inside = 0
		declared[++n] = text
		verbatim[n] = 1
	}
	next
}
/^YOKE_API/ { text = ""; open = 1 }
open {
	line = $0
	sub(/^YOKE_API /, "", line)
	sub(/^[ \t]+/, " ", line)
	comment = ""
	if (match(line, /[ \t]*\/\/.*/)) {
		comment = substr(line, RSTART)
		line = substr(line, 1, RSTART - 1)
	}
	text = text line
	if (text ~ /;$/) {
		declared[++n] = safe(text)
		verbatim[n] = 0
		open = 0
	}
	if (comment != "")
		note(comment)
}
END { flush() }
' "$1"

cat <<'END'
.SH SEE ALSO
.BR yoke (1),
.BR yoke\-plugin (7),
.BR yoke\-settings (7)
END

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Writes the manual page for writers of backends out of their guide: plugin.sh README >yoke-plugin.7
# A line of dashes makes a section of the line above; lines behind a tab are taken as they are.
set -eu

cat <<'END'
.\" SPDX-License-Identifier: Apache-2.0
.\" Made by doc/plugin.sh from plugins/README.
.TH YOKE\-PLUGIN 7 "" "yoke" "Miscellaneous"
.SH NAME
yoke\-plugin \- how to write a backend for yoke
END

awk '
function safe(text) {
	gsub(/\\/, "\\e", text)
	gsub(/-/, "\\-", text)
	return text ~ /^[.\x27]/ ? "\\&" text : text
}
function close_block() { if (block) print ".fi\n.RE"; block = 0 }
function put(line) {
	if (line ~ /^\t/) {
		if (!block) print (fresh ? "" : ".PP\n") ".RS\n.nf"
		block = 1
		fresh = 0
		sub(/^\t/, "", line)
		gsub(/\t/, "    ", line)
		print safe(line)
	} else if (line == "") {
		blank = 1
		return
	} else {
		close_block()
		if (blank && !fresh) print ".PP"
		sub(/^ +/, "", line)
		print safe(line)
		fresh = 0
	}
	blank = 0
}
/^=+$/ { print ".SH DESCRIPTION"; fresh = 1; held = 0; next }
/^-+$/ && held { close_block(); print ".SH " toupper(safe(last)); fresh = 1; held = 0; next }
{ if (held) put(last); last = $0; held = 1 }
END { if (held) put(last); close_block() }
' "$1"

cat <<'END'
.SH SEE ALSO
.BR yoke (1),
.BR yoke (3),
.BR yoke\-settings (7)
END

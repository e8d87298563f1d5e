#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Completes the manual page of the command: command.sh YOKE yoke.1.in >yoke.1
# A line `.\" keys COMMAND` is replaced by the keys of that command and `.\" optimizers` by the defaults of the optimizers, as
# `yoke help COMMAND all` prints them from its tables.  Where the command does not run (cross compiling) the page refers to `yoke help`.
set -u
yoke=$1

# keys COMMAND: under the title of each group a tagged paragraph for each key: meaning, words or range, default
keys()
{
	env -i HOME=/nonexistent YOKE_BACKEND=cpu "$yoke" help "$1" all 2>/dev/null >"$work"
	awk -v command="$1" '
	function safe(text) {
		gsub(/\\/, "\\e", text)
		gsub(/-/, "\\-", text)
		gsub(/\047/, "\\(aq", text)
		return text
	}
	/^keys/ { on = 1; next }
	on && /^[a-z].*:$/ {
		sub(/:$/, "")
		printf ".PP\n.I %s:\n", toupper(substr($0, 1, 1)) substr($0, 2)
	}
	on && /^  [a-z]/ {
		key = $1
		def = $2
		help = $0
		sub(/^  [^ ]+ +[^ ]+ +/, "", help)
		words = range = ""
		if (match(help, / *\([^()]*\)$/)) {
			range = substr(help, RSTART)
			help = substr(help, 1, RSTART - 1)
			gsub(/^ *\(|\)$/, "", range)
			if (range !~ /\.\.|, or /) {
				n = split(range, word, " ")
				words = "One of"
				for (i = 1; i <= n; i++)
					words = words (i > 1 ? ", " : " ") "\\fB" safe(word[i]) "\\fR"
			}
		}
		printf ".TP\n.B %s\n%s%s.\n", key, toupper(substr(help, 1, 1)), safe(substr(help, 2))
		if (words != "")
			print words "."
		else if (range != "") {
			sub(/ \.\. /, " to ", range)
			print safe("Range: " range) "."
		}
		printf "Default: %s.\n", key == "prompt" ? "a newline" : def == "-" ? "none" : safe(def)
		count++
	}
	END {
		if (!count)
			printf ".B yoke help %s\nprints them; the command could not be run when this page was made.\n", command
	}' "$work"
}

optimizers()
{
	env -i HOME=/nonexistent YOKE_BACKEND=cpu "$yoke" help train all 2>/dev/null | awk '
		/^optimizers/ { on = 1; next }
		!/^  / { on = 0 }
		on { name = $1; $1 = ""; sub(/^ /, ""); gsub(/-/, "\\-"); print ".TP\n.B " name "\n" $0 }'
}

work=${TMPDIR:-/tmp}/yoke-keys.$$
trap 'rm -f "$work"' EXIT
while IFS= read -r line; do
	case $line in
	'.\" keys '*) keys "${line#'.\" keys '}" ;;
	'.\" optimizers') optimizers ;;
	*) printf '%s\n' "$line" ;;
	esac
done <"$2"

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests the manual pages: every function, struct and setting is documented, and man page linters
# report no errors.
set -u
. "${srcdir:-.}/tests/tap.sh"
source=${srcdir:-.}

for header in $(cd "$source/include" && basename -s .h yoke*.h | grep -v plugin); do
	names=$(sed -n 's/^YOKE_API .*[ *]\(yoke_[a-z0-9_]*\)(.*/\1/p; s/^struct \(yoke_[a-z_]*\) {.*/\1/p' \
		"$source/include/$header.h")
	verdict "$header.h has functions" "$([ "$(echo "$names" | wc -l)" -ge 4 ] || echo "$names")"
	verdict "$header.3 has each of them" "$(for name in $names; do
		grep -qE "^(\\.B )?.*\\<$name[({ ]" "doc/$header.3" || echo "$name"
	done)"
	verdict "$header.3 has each section" "$(sed -n 's/^\/\/ ---- \(.*\) ----$/.SH \1/p' \
		"$source/include/$header.h" | tr '[:lower:]' '[:upper:]' | while read -r title; do
		grep -qxF "$title" "doc/$header.3" || echo "$title"
	done)"
done
verdict "yoke-plugin.7 has each section" "$(sed -n 's/^## //p' "$source/doc/plugins.md" |
	tr '[:lower:]' '[:upper:]' | while read -r title; do
	grep -qxF ".SH $title" doc/yoke-plugin.7 || echo "$title"
done)"
verdict "yoke-settings.7 has each setting" "$(YOKE_BACKEND=cpu ./yoke info --env all |
	awk 'NR > 1 { print $1 }' | while read -r name; do
	grep -qx "\\.B $name" doc/yoke-settings.7 || echo "$name"
done)"
verdict "yoke.1 has each command" "$(./yoke help | sed -n 's/^  \([a-z][a-z]*\) .*/\1/p' |
	while read -r name; do grep -q "^\\.B yoke $name" doc/yoke.1 || echo "$name"; done)"

# The keys of a command with their defaults, on the page and in the help of the command.  If a key takes several words, each is
# named; the default of a prompt is described.
for command in train generate chat serve eval; do
	awk -v section=".SS yoke $command" '
		/^\.S[SH]/ { on = $0 == section }
		!on { next }
		/^\.B [a-z][a-z0-9_]*$/ { key = $2 }
		{ text[key] = text[key] " " $0 }
		/^Default: / && key != "" {
			sub(/^Default: /, "")
			sub(/\.$/, "")
			print key, key == "prompt" ? "-" : $0 == "none" && key !~ /^(recompute|offload|dashboard|compress|quant)$/ ? "-" : $0
			n = split(text[key], word, /\\fB|\\fR/) # the even ones are words
			for (i = 2; n > 3 && i < n; i += 2) {
				gsub(/\\-/, "-", word[i])
				print key, "takes", word[i]
			}
			key = ""
		}' doc/yoke.1 | sort >"${TMPDIR:-/tmp}/page"
	./yoke help $command all | awk '
		/^keys/ { on = 1; next }
		on && /^  / {
			print $1, $1 == "prompt" ? "-" : $2
			if (match($0, /\([a-z0-9_-]+( [a-z0-9_-]+)+\)$/)) {
				n = split(substr($0, RSTART + 1, RLENGTH - 2), word, " ")
				while (n)
					print $1, "takes", word[n--]
			}
		}' | sort >"${TMPDIR:-/tmp}/help"
	verdict "yoke.1 has the keys of yoke $command, with what they take" "$(
		diff "${TMPDIR:-/tmp}/page" "${TMPDIR:-/tmp}/help"
		[ -s "${TMPDIR:-/tmp}/help" ] || echo "there are none")"
done
verdict "yoke.1 has each option" "$(for command in plan data info doctor bench check tune dashboard report; do
	./yoke help $command | grep -o -- ' --[a-z]*' | sort -u | while read -r option; do
		awk -v title=".SS yoke $command" '/^\.S[SH]/ { on = index($0 " ", title " ") == 1 } on' doc/yoke.1 | tr -d '\\' |
			grep -q -- "$option" || echo "yoke $command $option"
	done
done)"

for page in doc/yoke.1 doc/yoke*.3 doc/yoke-plugin.7 doc/yoke-settings.7; do
	name=$(basename "$page")
	if command -v mandoc >/dev/null 2>&1; then
		verdict "mandoc: $name" "$(mandoc -T lint -W warning "$page" | grep -v 'missing date')"
	elif command -v groff >/dev/null 2>&1; then
		verdict "groff: $name" "$(groff -ww -man -Tutf8 -z "$page" 2>&1)"
	else
		skip "$name" 'neither mandoc nor groff'
	fi
done
echo "1..$count"

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The manual pages: every function, struct and setting has its place, and what reads such pages finds
# nothing wrong with them.
set -u
. "${srcdir:-.}/tests/tap.sh"
source=${srcdir:-.}

names=$(sed -n 's/^YOKE_API .*[ *]\(yoke_[a-z0-9_]*\)(.*/\1/p; s/^struct \(yoke_[a-z]*\) {/\1/p' \
	"$source/include/yoke.h")
verdict "the header has functions" "$([ "$(echo "$names" | wc -l)" -gt 50 ] || echo "$names")"
verdict "yoke.3 has each of them" "$(for name in $names; do
	grep -qE "^(\\.B )?.*\\<$name[({ ]" doc/yoke.3 || echo "$name"
done)"
verdict "yoke.3 has each section" "$(sed -n 's/^\/\/ ---- \(.*\) ----$/.SH \1/p' \
	"$source/include/yoke.h" | tr '[:lower:]' '[:upper:]' | while read -r title; do
	grep -qxF "$title" doc/yoke.3 || echo "$title"
done)"
verdict "yoke-plugin.7 has each section" "$(sed -n -e '/^--*$/{x;p;d;}' -e h "$source/plugins/README" |
	tr '[:lower:]' '[:upper:]' | while read -r title; do
	grep -qxF ".SH $title" doc/yoke-plugin.7 || echo "$title"
done)"
verdict "yoke-settings.7 has each setting" "$(YOKE_BACKEND=cpu ./yoke info --env |
	awk 'NR > 1 { print $1 }' | while read -r name; do
	grep -qx "\\.B $name" doc/yoke-settings.7 || echo "$name"
done)"
verdict "yoke.1 has each command" "$(./yoke help | sed -n 's/^  \([a-z][a-z]*\) .*/\1/p' |
	while read -r name; do grep -q "^\\.B yoke $name" "$source/doc/yoke.1" || echo "$name"; done)"

for page in "$source/doc/yoke.1" doc/yoke.3 doc/yoke-plugin.7 doc/yoke-settings.7; do
	name=$(basename "$page")
	if command -v mandoc >/dev/null 2>&1; then
		verdict "mandoc: $name" "$(mandoc -T lint -W warning "$page" | grep -v 'missing date')"
	elif command -v groff >/dev/null 2>&1; then
		verdict "groff: $name" "$(groff -ww -man -Tutf8 -z "$page" 2>&1)"
	else
		count=$((count + 1))
		echo "ok $count - $name # SKIP neither mandoc nor groff"
	fi
done
echo "1..$count"

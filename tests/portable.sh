#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests that the build does not depend on the build machine: instructions beyond plain x86-64
# occur only in the objects of their instruction set, and each of those has some.
set -u
. "${srcdir:-.}/tests/tap.sh"
dump=$(sed -n 's/^OBJDUMP = *//p' Makefile)
dump=${dump:-objdump}
command -v "$dump" >/dev/null 2>&1 || { echo "1..0 # SKIP no $dump"; exit 0; }
case $(sed -n 's/^host_cpu = *//p' Makefile) in
x86_64) ;;
*) echo '1..0 # SKIP the baseline is another'; exit 0 ;;
esac
if grep -qE '^(CC|CFLAGS|CPPFLAGS) = .*-m(arch|avx|fma|bmi)' Makefile; then
	echo '1..0 # SKIP configured for another baseline'
	exit 0
fi
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT

# VEX and EVEX instructions on vectors, tiles, and BMI2.
beyond='[[:space:]]v[a-z0-9]+ +[^#]*%[xyz]mm|%tmm|tilerelease|[[:space:]](mulx|pdep|pext|rorx|sarx|shlx|shrx|bzhi) '

# has OBJECT ..: the first such instruction of each
has()
{
	for object; do
		"$dump" -d --no-show-raw-insn "$object" 2>/dev/null | grep -m 1 -E "$beyond" | sed "s|^|$object:|"
	done
}

# Objects of tests are not installed; limits_cpu.c, noise.c, elements.c and local_rx.c ask the processor themselves.
find src backends plugins -name '*.o' ! -name 'tests_*' ! -name limits_cpu.o ! -name noise.o ! -name elements.o ! -name local_rx.o | sort >"$work/all"
grep -E '/lib[a-z]*_(avx2|avx512|bf16|amx)_la-' "$work/all" >"$work/beyond"
grep -vxF -f "$work/beyond" "$work/all" >"$work/plain"
plain=$(wc -l <"$work/plain")
# shellcheck disable=SC2046 # words
verdict "$plain objects run on any x86-64" "$([ "$plain" -gt 100 ] || cat "$work/plain"
	has $(cat "$work/plain"))"
for set in avx2 avx512 bf16 amx; do
	object=$(grep "_${set}_la-kern_contract" "$work/beyond" | tail -n 1)
	if [ -z "$object" ]; then
		skip "$set" 'not built'
	else
		verdict "$object has its instructions" "$([ -n "$(has "$object")" ] || echo 'it has none')"
	fi
done
echo "1..$count"
exit $failed

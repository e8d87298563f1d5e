#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests the documents: the examples that they refer to compile against this build and learn; the
# files, settings and keys that README.md, HACKING and the guides name exist.
set -u
. "${srcdir:-.}/tests/tap.sh"
. "${srcdir:-.}/tests/built.sh"

# ---- the examples ----

verdict "README.md links to examples/xor.c" "$(grep -q '(examples/xor.c)' "$source/README.md" || echo no)"
verdict "the example compiles without a warning" "$(compiles "$source/examples/xor.c" xor)"
losses=$(YOKE_BACKEND=cpu LD_LIBRARY_PATH="$build/.libs" ./xor 2>&1)
verdict "the example's loss decreases" "$(echo "$losses" | awk '
	{ loss = $4; all = all $0 "\n" }
	$1 != "step" || $3 != "loss" || NR > 1 && !(loss < last) { bad = 1 }
	NR == 1 { first = loss }
	{ last = loss }
	END { if (bad || NR < 3 || !(last < first / 10)) printf "%s", all }')"

verdict "examples/optim.c compiles without a warning" "$(compiles "$source/examples/optim.c" optim)"
descent=$(YOKE_BACKEND=cpu LD_LIBRARY_PATH="$build/.libs" ./optim 2>&1)
verdict "examples/optim reaches the minimum" "$(echo "$descent" | awk '
	{ all = all $0 "\n"; last = $4 }
	END { if (NR != 5 || !(last < 1e-4)) printf "%s", all }')"

chain=$(YOKE_BACKEND=cpu "$build/examples/transmission" 2>&1) # built by make check
verdict "a perfect chain transmits everything, a raised site follows its formula" "$(echo "$chain" | awk '
	function off(x) { return x < 0 ? -x : x }
	{ all = all $0 "\n" }
	/^ *-?[0-9]/ { n++; if (!(off($2 - 1) < 1e-9 && off($3 - 1 / (1 + 0.64 / (4 - $1 * $1))) < 1e-6)) bad = 1 }
	END { if (bad || n != 13) printf "%s", all }')"

# ---- names ----

cd "$source" || exit 99
documents="README.md HACKING $(echo doc/*.md)"
folders="backends|bench|build-aux|cl|doc|examples|include|m4|plugins|src|tests"

# A pattern stands for what it matches, X.t for X.c as well; NAME is anybody's.
absent()
{
	# shellcheck disable=SC2086 # words
	grep -noE "\\b($folders)/[A-Za-z0-9_./*-]*[A-Za-z0-9_*]" $documents |
		while IFS=: read -r file line path; do
			set -- $path
			case $path in
			*NAME* | */.libs | tests/tmp*) continue ;; # made by a build
			tests/hwloc/*) continue ;; # of other sources
			esac
			[ -e "$1" ] || [ -e "$build/$1" ] || [ -e "${1%.t}.c" ] || [ -e "python/$1" ] ||
				echo "$file:$line: $path is not there"
		done
}
verdict "the files that documents name exist" "$(absent)"

yoke=${YOKE:-$build/yoke}
"$yoke" info --env all | awk '{ print $1 }' >"$work/settings"
"$yoke" help train all >"$work/keys"
"$yoke" help generate >>"$work/keys"

unknown()
{
	# shellcheck disable=SC2086 # words
	grep -noE 'YOKE_[A-Z_]+=' $documents | while IFS=: read -r file line name; do
		name=${name%=}
		case $name in # of tests, and those that GPU backends declare
		YOKE_TEST_* | YOKE_FAULT_* | YOKE_FAKE_* | YOKE_BUILD | YOKE_MATMUL | YOKE_ATTENTION) continue ;;
		esac
		grep -qx "$name" "$work/settings" || echo "$file:$line: there is no setting $name"
	done
	# shellcheck disable=SC2086 # words
	grep -nE 'yoke (train|generate|eval) ' $documents | sed 's/"[^"]*"/""/g' |
		while IFS=: read -r file line text; do
			for word in $text; do
				case $word in
				[a-z]*=*)
					key=${word%%=*}
					grep -q "^  $key " "$work/keys" ||
						echo "$file:$line: there is no key $key"
					;;
				esac
			done
		done
}
verdict "the settings and keys that documents name exist" "$(unknown)"
echo "1..$count"

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# llama.cpp beside yoke on the CPU: one sequence, the same GGUF files, runs in turn.
#
#	bench/peers/llama.sh [-b BUILD] [-t THREADS] [-r ROUNDS] [-n TOKENS] [-p PROMPT] LLAMA_BUILD MODEL.gguf ..
#
# LLAMA_BUILD is llama.cpp's build directory, with bin/llama-bench; BUILD is yoke's. Each round runs llama-bench and,
# for each value of YOKE_QMATMUL, yoke. Prints medians over the rounds, the range, and yoke's ratio to llama.cpp:
#
#	tg      generated tokens per second, TOKENS - 1 tokens. yoke's rate comes from the difference
#	        of two runs, which cancels loading
#	pp      tokens of a prompt of PROMPT words (one token each) per second, likewise from the difference to one word
#	first   seconds from the start of `yoke generate` to its first token; llama-bench does not report this
#
# Both have an f16 cache of keys and values, and greedy sampling in yoke. Keep the machine idle otherwise.
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
threads=2 rounds=5 tokens=65 words=512 build=$top/build

usage()
{
	sed -n 's/^#\t\(bench.*\)/usage: \1/p' "$0" >&2
	exit 2
}

while getopts b:t:r:n:p: option; do
	case $option in
	b) build=$OPTARG ;;
	t) threads=$OPTARG ;;
	r) rounds=$OPTARG ;;
	n) tokens=$OPTARG ;;
	p) words=$OPTARG ;;
	*) usage ;;
	esac
done
shift $((OPTIND - 1))
[ $# -ge 2 ] || usage
llama=$1
shift
for program in "$llama/bin/llama-bench" "$build/yoke"; do
	[ -x "$program" ] || {
		echo "bench/peers/llama.sh: there is no $program" >&2
		exit 2
	}
done

context=$((words + tokens + 16))
long=$(printf 'one%*s' $((words - 1)) '' | sed 's/ / one/g')
figures=$(mktemp) || exit 2
trap 'rm -f "$figures"' EXIT

# seconds MODEL TOKENS PROMPT: of `yoke generate`
seconds()
{
	local TIMEFORMAT=%R
	{ time "$build/yoke" generate "$1" prompt="$3" tokens="$2" temperature=0 kv=f16 context=$context \
		threads="$threads" >"$figures.out" 2>&1; } 2>&1 || {
		cat "$figures.out" >&2
		return 1
	}
}

# Lines of figures: model, test, engine, value.
round()
{
	local model=$1 name mode first more prompt
	name=$(basename "$model" .gguf)
	"$llama/bin/llama-bench" -m "$model" -t "$threads" -ngl 0 -p "$words" -n $((tokens - 1)) -r 1 -o csv 2>/dev/null |
		awk -F'","' -v name="$name" '
			NR == 1 { gsub(/"/, ""); n = split($0, title, ","); for (i = 1; i <= n; i++) column[title[i]] = i; next }
			{ print name, ($column["n_gen"] > 0 ? "tg" : "pp"), "llama.cpp", $column["avg_ts"] }'
	for mode in int16 int8; do
		export YOKE_QMATMUL=$mode
		first=$(seconds "$model" 1 one) && more=$(seconds "$model" "$tokens" one) &&
			prompt=$(seconds "$model" 1 "$long") || return 1
		awk -v name="$name" -v mode="yoke,$mode" -v first="$first" -v more="$more" -v prompt="$prompt" \
			-v n=$((tokens - 1)) -v words=$((words - 1)) 'BEGIN {
			print name, "first", mode, first
			if (more > first) print name, "tg", mode, n / (more - first)
			if (prompt > first) print name, "pp", mode, words / (prompt - first) }'
	done
}

for ((i = 0; i < rounds; i++)); do
	for model; do
		round "$model" >>"$figures" || exit 1
	done
done
rm -f "$figures.out"

echo "$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -1), $threads threads, $rounds rounds," \
	"$((tokens - 1)) tokens after $words; load $(cut -d ' ' -f 1 /proc/loadavg)"
sort -k1,1 -k2,2 -k3,3 -k4,4g "$figures" | awk '
function flush() {
	if (!n)
		return
	median = n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2
	if (engine == "llama.cpp")
		peer[name, test] = median
	ratio = (name, test) in peer ? sprintf("%.2f", median / peer[name, test]) : "-"
	printf "%-24s %-6s %-11s %10.4g  %9.4g .. %-9.4g %s\n", name, test, engine, median, v[1], v[n], ratio
	n = 0
}
BEGIN { printf "%-24s %-6s %-11s %10s  %-22s %s\n", "model", "test", "engine", "median", "range", "ratio" }
$1 != name || $2 != test || $3 != engine { flush(); name = $1; test = $2; engine = $3 }
{ v[++n] = $4 }
END { flush() }'

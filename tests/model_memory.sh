#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests the memory that generation takes: quantized weights stay as the file has them, and the cache
# of keys and values is sized for the tokens that are asked for, not for the model's whole context.
# YOKE_TEST_LONG=1: a model of 7 billion parameters generates within 6 GB.
set -u
. "${srcdir:-.}/tests/yoke.sh"
. "${srcdir:-.}/tests/tap.sh"
python3 -c '' 2>/dev/null || { echo '1..0 # SKIP no python3'; exit 0; }
tests=$(cd "${srcdir:-.}" && pwd)/tests
workspace model_memory
export YOKE_BACKEND=cpu

# peak COMMAND ..: runs it and prints the kilobytes of memory that were resident at its peak
peak()
{
	python3 -c 'import resource, subprocess, sys
code = subprocess.run(sys.argv[1:], stdout=2).returncode
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(code)' "$@" 2>err
}

# generates WHAT KILOBYTES MODEL: 8 tokens take at most that much memory
generates()
{
	used=$(peak "$yoke" generate "$3" prompt=a tokens=8 temperature=0)
	code=$?
	verdict "$1 generates within $2 kB" "$(if [ $code -ne 0 ]; then
		echo "exit status $code"
		cat err
	elif [ "$used" -gt "$2" ]; then
		echo "$used kB"
	fi)"
}

# A cache for the whole context would take 8 GiB as f16.
for format in q4_k q6_k q8_0 q4_0; do
	python3 "$tests/models/random_gguf.py" $format.gguf $format 4194304 256 4 2 512 512
	generates "$format with a context of 4 million tokens" 4000000 $format.gguf
done

if [ "${YOKE_TEST_LONG:-0}" = 0 ]; then
	skip 'a model of 7 billion parameters' 'writes 3.8 GB: YOKE_TEST_LONG=1'
else
	python3 "$tests/models/random_gguf.py" large.gguf q4_k 4096 4096 32 32 11008 32000
	generates 'a model of 7 billion parameters' 6000000 large.gguf
fi

cd .. && rm -rf model_memory.work
echo "1..$count"

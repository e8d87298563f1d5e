#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests examples/net.c: a custom network in at most 75 lines, compiled as an application, learns
# and writes a complete file.
set -u
. "${srcdir:-.}/tests/tap.sh"
. "${srcdir:-.}/tests/built.sh"

lines=$(wc -l <"$source/examples/net.c")
verdict "examples/net.c has at most 75 lines" "$([ "$lines" -le 75 ] || echo "$lines")"
verdict "examples/net.c compiles without a warning" "$(compiles "$source/examples/net.c" net -O1)"
said=$(YOKE_BACKEND=cpu LD_LIBRARY_PATH="$build/.libs" ./net net.safetensors 2>&1)
verdict "examples/net.c classifies 97 of 100 images correctly" "$(echo "$said" | awk '
	$1 == "right" { right = $2 }
	END { if (!(right >= 0.97)) print "right " right }'
	echo "$said" | grep -v '^step\|^right')"
verdict "the model file has the network's tensors" "$(for name in 0.weight 1.bias 1.running_mean 4.weight 5.running_var 9.weight 9.bias; do
	head -c 4096 net.safetensors | grep -qF "\"$name\"" || echo "no $name"
done)"
echo "1..$count"

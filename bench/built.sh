# SPDX-License-Identifier: Apache-2.0
# Sourced by bench/gpu.sh and bench/bundle.sh, which set $top, the root of the source tree or bundle.

die()
{
	echo "bench/$(basename "$0"): $*" >&2
	exit 2
}

# find_build GIVEN: sets $build to the build directory, which is the given one, top/build or the current one
find_build()
{
	for build in ${1:+"$1"} "$top/build" .; do
		[ -z "$1" ] || [ "$build" = "$1" ] || break
		if [ -x "$build/yoke" ] && [ -e "$build/config.status" ]; then
			build=$(cd "$build" && pwd)
			return
		fi
	done
	die "there is no built yoke${1:+ in $1}: run make, or name its build directory by -b"
}

# our_text: prints the sample to train on, yoke's own documents
our_text()
{
	cat "$top/HACKING" "$top/NEWS" "$top"/doc/*.md
}

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes ./configure from configure.ac; needed once in a checkout, never in a release.
set -eu
unset CDPATH
cd "$(dirname "$0")"
for tool in autoconf automake libtoolize pkg-config; do
	command -v "$tool" >/dev/null 2>&1 || {
		echo "autogen.sh: $tool is missing; on Debian and Ubuntu:" \
			"apt-get install autoconf automake libtool pkg-config" >&2
		exit 1
	}
done
exec autoreconf --install "$@"

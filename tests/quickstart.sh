#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# quickstart and the other scripts of the tree: syntax, help, bad use.
set -u
cd "${srcdir:-.}" || exit 99
count=0

# result STATUS TEXT
result()
{
	count=$((count + 1))
	if [ "$1" -eq 0 ]; then echo "ok $count - $2"; else echo "not ok $count - $2"; fi
}

for script in quickstart .ci/run autogen.sh build-aux/embed.sh tests/run tests/*.sh; do
	sh -n "$script"
	result $? "$script is POSIX shell"
done
sh ./quickstart help | grep -q 'quickstart check'
result $? "help names the commands"
sh ./quickstart nonsense >/dev/null 2>&1
[ $? -eq 2 ]
result $? "bad use exits 2"
echo "1..$count"

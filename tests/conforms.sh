# SPDX-License-Identifier: Apache-2.0
# Sourced after tap.sh: runs the conformance test and checks its output.

# wrong STATUS COMMAND ..: lines about what is not as it should be
wrong()
{
	want=$1
	shift
	"$@" >conform.out 2>conform.err
	status=$?
	[ $status -eq "$want" ] || echo "status $status"
	grep -v '^[0-9]* warnings\{0,1\} generated' conform.err # the compiler inside PoCL
	[ "$want" -ne 0 ] || grep -A 2 '^not ok' conform.out
	grep 'were not reported' conform.out # a backend may be silent; ours are not
	grep -q '^1\.\.[1-9]' conform.out || echo 'no plan'
}

# taken: lines that are not skipped
taken()
{
	grep -c '^ok .*cases' conform.out
}

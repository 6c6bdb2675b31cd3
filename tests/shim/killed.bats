#!/usr/bin/env bats
# SIGKILL at arbitrary moments: the file tells every allocation whose call had returned.

load helpers

@test "25 kills of four allocating threads" {
	local i
	for i in $(seq 25); do
		killed
		report
		/usr/bin/env python3 "$BATS_TEST_DIRNAME/killed.py" "$work/books" "$work/document"
	done
}

#!/usr/bin/env bats
# SIGKILL at arbitrary moments: the file tells every allocation whose call had returned.

load helpers

@test "kills (KILLS of them, 30) of four allocating threads" {
	local i
	for i in $(seq ${KILLS:-30}); do
		killed
		report
		/usr/bin/env python3 "$BATS_TEST_DIRNAME/killed.py" "$work/books" "$work/document"
	done
}

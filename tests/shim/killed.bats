#!/usr/bin/env bats
# SIGKILL at arbitrary moments: the file tells every allocation whose call had returned.

load helpers

@test "25 kills of four allocating threads" {
	local i
	for i in $(seq 25); do
		rm -f "$work"/out.gmt* "$work/books"
		LD_PRELOAD=$SHIM "$PROGRAMS/killed" "$work/books" &
		# until the threads are at work; then a moment of the scheduler's choosing
		until [ -s "$work/books" ] && [ "$(od -An -tu8 -N8 "$work/books")" -gt $((RANDOM % 2000)) ]; do
			kill -0 $! || return 1
		done
		kill -KILL $!
		wait $! 2> /dev/null || true
		report
		/usr/bin/env python3 "$BATS_TEST_DIRNAME/killed.py" "$work/books" "$work/document"
	done
}

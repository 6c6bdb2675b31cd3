#!/usr/bin/env bats
# Several ends of one process at the same time: execs that fail, exits, an exec that succeeds.

load ../helpers

# ends WAY [FILE]: the program ends with 42 under the shim, and its file says that it ended in order.
ends() {
	local status=0
	rm -f "$work"/out.gmt*
	traced "$HOSTILE/ends_at_once" "$@" 2> "$work/error" || status=$?
	[ "$status" -eq 42 ] || { echo "ended with $status: $(cat "$work/error")"; return 1; }
	report
	is .process.end '"exit"'
	is .file.complete true
	is .file.dropped_events 0
}

at_the_end() {
	is '[.sites[] | select(any(.stack[]; .function == "at_the_end")) | .live_count] | add' 64
}

@test "execs fail in three threads and in main while three allocate: the accounts are exact" {
	for i in 1 2 3; do
		ends fail
		same allocations '[.usage[] | select(.kind == "device")] | map(.allocations) | add'
	done
}

@test "the same with a complete history: it stays complete" {
	for i in 1 2 3; do
		GPUMEMTRACE_EVENTS=all ends fail
		is .file.warnings '[]'
		is .tracer.history.ends_s null
		is .tracer.history.lost 0
	done
}

@test "execs fail while main exits" {
	for i in $(seq 25); do
		ends exit
		at_the_end
	done
}

@test "one exec succeeds while others fail: the file before it says so" {
	for i in $(seq 10); do
		ends exec
		"$REPORT" summary --json "$work/out.gmt.old1" > "$work/document"
		is .process.end '"exit"'
		is .file.complete true
		at_the_end
	done
}

@test "four threads call _exit at the same moment: the file is cut to its length" {
	for i in $(seq 25); do
		ends end
		at_the_end
		[ "$(stat -c %s "$work/out.gmt")" -eq "$(jq .tracer.file_bytes "$work/document")" ]
	done
}

@test "execs fail while the file is in memory" {
	GPUMEMTRACE_OUT=/proc/none/out.gmt traced "$HOSTILE/ends_at_once" fail 2> "$work/error" && return 1
	[ "$(jq .allocations "$work/said")" -eq 12001 ]
}

@test "daemon(3): the parent's file says that it ended, and the child has its own" {
	traced "$HOSTILE/ends_at_once" daemon
	report
	is .process.end '"exit"'
	is '[.sites[] | .live_bytes] | add' 12345
}

@test "exec and _exit while another thread opens the file: they wait until it is open" {
	for i in $(seq 10); do
		ends early-exec "$work/out.gmt"
		ends early-end "$work/out.gmt"
	done
}

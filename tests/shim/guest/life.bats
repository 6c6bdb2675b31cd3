#!/usr/bin/env bats
# Forks, signals and every way to end: no hang, the program's own exit status, its own file intact.

load ../helpers

# books: the program's figures against those of its file.
books() {
	report
	same live '[.totals[] | select(.device == 0)][0].current_bytes'
	same allocations '[.usage[] | select(.kind == "device")] | map(.allocations) | add'
	is .file.complete true
	is .file.dropped_events 0
	# each block has its record, also those for which the file grew last
	is '[.sites[] | select(.device == 0) | .live_count] | add' "$(jq '.live_count // 0' "$work/said")"
}

# ended_with STATUS KIND PROGRAM ARG...: its exit status, and what the file says of the end.
ended_with() {
	local wanted=$1 end=$2 status=0
	shift 2
	traced "$@" 2> "$work/error" || status=$?
	[ "$status" -eq "$wanted" ] || { echo "ended with $status: $(cat "$work/error")"; return 1; }
	report
	is .process.end "\"$end\""
	is .file.complete true
	is '[.sites[] | select(.live_bytes == 12345)] | length' 1
}

children() {
	traced "$GUEST/guest_forks" "$1" "$2"
	books
	same pid .process.pid
	is .process.end '"exit"'
}

@test "fork: 200 children that only end, threads allocating" {
	children idle 200
	[ "$(ls "$work"/*.gmt* | wc -l)" -eq 1 ]
}

@test "fork: 40 children that record, each its own file" {
	children record 40
	[ "$(ls "$work"/out.gmt.* | wc -l)" -eq 40 ]
	for file in $(ls "$work"/out.gmt.* | head -n 5); do
		"$REPORT" summary --json "$file" > "$work/document"
		is '[.sites[] | select(.level == "custom")] | map(.live_bytes) | add' 100
		is .process.pid "${file##*.}"
		is .process.end '"exit"'
	done
}

@test "fork: a child's thread that records first; the one that forked is not taken for its parent" {
	children threads 5
	for file in "$work"/out.gmt.*; do
		"$REPORT" export --format sqlite -o "$file.sqlite" "$file"
		threads=$(python3 -c 'import sqlite3, sys
for thread, in sqlite3.connect(sys.argv[1]).execute("SELECT DISTINCT thread FROM events WHERE bytes = 100"):
    print(thread)' "$file.sqlite")
		[ "$threads" = "${file##*.}" ] || { echo "$file: $threads"; return 1; }
	done
}

@test "fork: 100 children that end by exit: no report of the parent's" {
	unset GPUMEMTRACE_QUIET
	traced "$GUEST/guest_forks" exit 20 2> "$work/error"
	[ "$(grep -c 'written to' "$work/error")" -eq 21 ]
	[ "$(grep -c "written to $work/out.gmt$" "$work/error")" -eq 1 ]
	books
}

@test "fork and exec, fork and an exec that fails: 100 each" {
	children exec 100
	rm "$work"/out.gmt
	children failing-exec 100
}

@test "vfork and a failing exec, 200 times" { children vfork 200; }
@test "posix_spawn, 100 times" { children spawn 100; }
@test "a raw clone: 100 that end, 50 that exec, 50 that record" {
	children clone-idle 100
	rm "$work"/out.gmt
	children clone-exec 50
	rm "$work"/out.gmt
	children clone-record 50
	[ "$(ls "$work"/out.gmt.* | wc -l)" -eq 50 ]
}

@test "a raw clone while the loader's list is locked: 20 that record, with whole stacks" {
	children clone-locked 20
	[ "$(ls "$work"/out.gmt.* | wc -l)" -eq 20 ]
	for file in "$work"/out.gmt.*; do
		"$REPORT" summary --json "$file" > "$work/document"
		is '[.sites[] | select([.stack[].function] | contains(["use_tracker", "child_by", "main"])) | .live_count] | add' 1
	done
}

@test "fork in the middle of a CUDA call, 50 children that return from it and record" {
	SHIM=$SHIM:$GUEST/hook_fork.so
	children inside 50
	[ "$(ls "$work"/out.gmt.* | wc -l)" -eq 50 ]
}

@test "python multiprocessing: fork, spawn, forkserver" {
	for method in fork spawn forkserver; do
		rm -f "$work"/out.gmt*
		GPUMEMTRACE_OUT=$work/%p.gmt traced python3 "$BATS_TEST_DIRNAME/workers.py" $method
		[ "$(jq -r .workers "$work/said")" -eq 4 ]
		for pid in $(jq -r '.pids[]' "$work/said"); do
			"$REPORT" summary --json "$work/$pid.gmt" > "$work/document"
			is .process.pid "$pid"
			is .file.complete true
			is '[.sites[] | select(.level == "custom")] | map(.live_count) | add' 5
		done
		rm -f "$work"/*.gmt
	done
}

@test "ends: exit, _exit, _Exit, quick_exit while threads allocate" {
	for way in exit _exit _Exit quick_exit; do
		for i in 1 2 3 4 5; do
			rm -f "$work"/out.gmt*
			ended_with 42 exit "$GUEST/guest_ends" $way
			is .file.clean_exit true
		done
	done
}

@test "ends: abort, SIGSEGV: killed, everything is there" {
	ended_with 134 killed "$GUEST/guest_ends" abort
	rm "$work"/out.gmt
	ended_with 139 killed "$GUEST/guest_ends" segv
}

@test "ends: a crash handler on 8 KiB of stack calls _exit" {
	ended_with 42 exit "$GUEST/guest_ends" segv-handler
}

@test "ends: exec over itself, two files; exec that fails, twenty times" {
	ended_with 42 exit "$GUEST/guest_ends" exec
	"$REPORT" summary --json "$work/out.gmt.old1" > "$work/document"
	is .file.complete true
	is .process.end '"exit"'
	is '[.sites[] | select(.live_bytes == 12345)] | length' 1
	rm "$work"/out.gmt*
	ended_with 42 exit "$GUEST/guest_ends" failing-exec
	is '[.sites[] | select(.live_count == 20000)] | length' 1
	[ "$(ls "$work"/*.gmt* | wc -l)" -eq 1 ]
}

@test "ends: std::terminate, abort in a static destructor" {
	[ -x "$GUEST/guest_throw" ] || skip "no C++ compiler"
	ended_with 134 killed "$GUEST/guest_throw" terminate
	rm "$work"/out.gmt
	ended_with 134 killed "$GUEST/guest_throw" destructor
}

@test "killed by the memory cgroup's out-of-memory killer" {
	local group=/sys/fs/cgroup/memory/gpumemtrace-test.$$ limit=memory.limit_in_bytes
	[ -d /sys/fs/cgroup/memory ] || { group=/sys/fs/cgroup/gpumemtrace-test.$$; limit=memory.max; }
	mkdir "$group" 2> /dev/null && echo 64M > "$group/$limit" 2> /dev/null ||
		{ rmdir "$group" 2> /dev/null || true; skip "no memory cgroup that this user may make"; }
	echo 0 > "$group/memory.swap.max" 2> /dev/null || true
	run bash -c "echo \$\$ > '$group/cgroup.procs'; LD_PRELOAD='$SHIM' exec python3 '$BATS_TEST_DIRNAME/hog.py' '$SIM'"
	rmdir "$group"
	[ "$status" -eq 137 ]
	report
	is .process.end '"killed"'
	is '.totals[0].current_bytes' 54321
}

@test "signal handlers that allocate, that jump out, on their own stack" {
	for way in stay jump; do
		for stack in "" own; do
			rm -f "$work"/out.gmt
			traced "$GUEST/guest_handlers" $way $stack
			report
			same live '.totals[0].current_bytes'
			same allocations '[.usage[] | select(.kind == "device")] | map(.allocations) | add'
		done
	done
}

@test "signal handlers that come between marks and copies" {
	traced timeout 300 "$GUEST/guest_handlers" marks "$work/copy.gmt"
	report
	is '.totals[0].current_bytes' 0
	"$REPORT" summary --json "$work/copy.gmt" > "$work/document"
}

@test "plug-ins and the driver come and go, threads start and end" {
	traced "$GUEST/guest_unload" "$PROGRAMS/plugin12.so" "$PROGRAMS/plugin13.so"
	books
}

@test "constructors that allocate before ours, destructors that free after main" {
	traced "$GUEST/guest_early_program"
	report
	same allocations '[.usage[] | select(.kind == "device")] | map(.allocations) | add'
	same frees '[.usage[] | select(.kind == "device")] | map(.frees) | add'
	is .process.end '"exit"'
}

@test "errno, signal mask, descriptors, threads, unwinder: as they were" {
	traced "$GUEST/guest_manners"
}

#!/usr/bin/env bats
# What the documents promise about surroundings that few programs have.

load ../helpers

# calls NAME COMMAND...: the names of the system calls that it makes, in the file $work/NAME.
calls() {
	local name=$1
	shift
	strace -f -qq -o "$work/trace" "$@" > "$work/said" 2> "$work/error"
	sed -nE 's/^[0-9]+ +([a-z_0-9]+)\(.*/\1/p' "$work/trace" | sort -u > "$work/$name"
	[ -s "$work/$name" ]
}

# listed: the names of the system calls that the documents list.
listed() {
	sed -n '/^\* Programs under a seccomp filter/,/(the rest)/p' "$DOCS/evidence/reliability.md" \
		| grep -oE '`[a-z_0-9]+`' | tr -d '`' | sort -u
}

# filtered WAY [CALL...]: the program, whose filter allows these calls, ends as it should.
filtered() {
	local status=0
	rm -f "$work"/out.gmt*
	traced "$HOSTILE/surroundings" "$@" || status=$?
	[ "$status" -eq 42 ] || { echo "$1 ended with $status"; return 1; }
}

@test "a filter that kills at every call beside the list, set at the start and after the first call" {
	[ "$(uname -m)" = x86_64 ] || skip "the filter is for x86-64"
	local way
	for way in seccomp seccomp-later; do
		filtered $way $(listed)
		report
		is .process.end '"exit"'
		same allocations '[.usage[] | select(.kind == "device") | .allocations] | add'
	done
}

@test "a filter by which every other call fails: the program goes on, and what is missing is said" {
	[ "$(uname -m)" = x86_64 ] || skip "the filter is for x86-64"
	filtered seccomp-errno
	filtered seccomp-errno-later
	report
	is .process.end '"killed"' # the end cannot be completed
	is '.file.complete, .file.dropped_events > 0' $'false\ntrue'
}

@test "the system calls that a sandbox must allow are those of the list" {
	command -v strace > /dev/null || skip "no strace here"
	calls alone "$HOSTILE/files" copy
	calls traced env GPUMEMTRACE_SIGNAL=USR1 GPUMEMTRACE_EVENTS=all LD_PRELOAD="$SHIM" \
		"$HOSTILE/files" signal "$work/copy.gmt"
	listed > "$work/listed"
	[ "$(wc -l < "$work/listed")" -gt 30 ]
	comm -23 "$work/traced" "$work/alone" > "$work/added"
	[ -s "$work/added" ] # beside these, what the program itself makes of its signal:
	run comm -23 "$work/added" "$work/listed"
	[ -z "$(grep -vE '^(rt_sigreturn|tgkill)$' <<< "$output")" ] || { echo "not listed: $output"; return 1; }
}

@test "a working directory that was deleted: it is said, twice, and the program goes on" {
	mkdir "$work/gone"
	cd "$work/gone"
	rmdir "$work/gone"
	unset GPUMEMTRACE_QUIET
	GPUMEMTRACE_OUT=here.gmt traced "$HOSTILE/files" copy 2> "$work/error"
	grep -q 'cannot keep a file at here.gmt (No such file or directory): recording in memory' "$work/error"
	grep -q 'could not finish here.gmt: No such file or directory' "$work/error"
	traced "$HOSTILE/files" copy
	report
	is '.totals[0].current_bytes' $((11 << 20))
}

@test "a memory cgroup, of either version, with less room than a copy of the process may take: none is made" {
	local group=/sys/fs/cgroup/memory/gpumemtrace-test.$$ limit=memory.limit_in_bytes
	[ -d /sys/fs/cgroup/memory ] || { group=/sys/fs/cgroup/gpumemtrace-test.$$; limit=memory.max; }
	mkdir "$group" 2> /dev/null && echo 200M > "$group/$limit" 2> /dev/null ||
		{ rmdir "$group" 2> /dev/null || true; skip "no memory cgroup that this user may make"; }
	unset GPUMEMTRACE_QUIET
	run env PATH="$(dirname "$TOOL"):$PATH" bash -c "echo \$\$ > '$group/cgroup.procs'
		GPUMEMTRACE_HOLDERS=mark LD_PRELOAD='$SHIM' exec '$HOSTILE/surroundings' mark"
	rmdir "$group"
	[ "$status" -eq 42 ]
	grep -q 'no copy of the process is made: too little memory is free for one' <<< "$output"
}

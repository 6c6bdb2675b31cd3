#!/usr/bin/env bats
# Marks by a signal and by NVTX ranges; what was allocated since a mark.

load ../helpers

@test "a signal: a mark, and a copy that holds what was there at that moment" {
	GPUMEMTRACE_SIGNAL=USR1 traced "$PROGRAMS/marks" once
	report
	is '[.marks[] | {name, current_bytes}]' '[{"name":"signal","current_bytes":1048576}]'
	is '.totals[0].current_bytes' 2097152
	"$REPORT" summary --json "$work/out.gmt.snap1" > "$work/document"
	is '.totals[0].current_bytes' 1048576
	is '.file.complete' true
	is '.file.clean_exit' false
	# the process went on: nobody killed it
	is '.process.end' '"running"'
	is '.leaks.exit_bytes' null
	[ ! -e "$work/out.gmt.snap2" ]
}

@test "a signal does not move what counts as a leak at exit" {
	GPUMEMTRACE_SIGNAL=SIGUSR1 traced "$PROGRAMS/marks" once
	report
	is '.leaks.exit_bytes' 2097152
}

@test "the program's own handler runs too; one that comes later replaces ours" {
	GPUMEMTRACE_SIGNAL=USR1 traced "$PROGRAMS/marks" before
	report
	is '[.marks[].name]' '["signal"]'
	[ "$(jq .handled "$work/said")" = 1 ]
	rm -f "$work"/out.gmt*
	GPUMEMTRACE_SIGNAL=USR1 traced "$PROGRAMS/marks" after
	report
	is '.marks' '[]'
	[ "$(jq .handled "$work/said")" = 1 ]
}

@test "signals in the midst of allocations: as many marks as copies, each whole" {
	GPUMEMTRACE_SIGNAL=USR1 traced "$PROGRAMS/marks" storm
	report
	is '.totals[0].current_bytes' 2097152
	marks=$(jq '.marks | length' "$work/document")
	[ "$marks" -ge 1 ]
	[ "$(ls "$work"/out.gmt.snap* | wc -l)" -eq "$marks" ]
	# a copy's own figures agree: what is live is what its sites say
	for copy in "$work"/out.gmt.snap*; do
		"$REPORT" summary --json "$copy" > "$work/document"
		is '.file.warnings' '[]'
		is '(.totals[0].current_bytes) == ([.sites[].live_bytes] | add)' true
	done
}

@test "without GPUMEMTRACE_SIGNAL the signal is the program's" {
	run env LD_PRELOAD="$SHIM" "$PROGRAMS/marks" once
	[ "$status" -eq $((128 + 10)) ]
}

@test "NVTX ranges of the name: each end is a mark, in every form" {
	GPUMEMTRACE_MARK=step traced "$PROGRAMS/nvtx"
	report
	[ "$(jq .injected "$work/said")" = 1 ]
	same steps '.marks | length'
	is '[.marks[].name] | unique' '["step"]'
	# marks that the user asked for are the program's: what was there before the first is no leak
	is '.leaks.exit_bytes' 8192
}

@test "NVTX by its own headers" {
	[ -x "$PROGRAMS/nvtx3" ] || skip "no nvtx3 headers here"
	GPUMEMTRACE_MARK=step traced "$PROGRAMS/nvtx3"
	report
	same steps '.marks | length'
}

@test "NVTX: nothing is injected with GPUMEMTRACE_RANGES=off, and another tool's injection stays" {
	GPUMEMTRACE_RANGES=off traced "$PROGRAMS/nvtx"
	[ "$(jq .injected "$work/said")" = 0 ]
	rm -f "$work"/out.gmt*
	GPUMEMTRACE_MARK=step NVTX_INJECTION64_PATH=/nowhere/tool.so traced "$PROGRAMS/nvtx" 2> "$work/error"
	[ "$(jq .injected "$work/said")" = 0 ]
	grep -q 'NVTX_INJECTION64_PATH is set already' "$work/error"
	report
	is '.marks' '[]'
}

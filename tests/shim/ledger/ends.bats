#!/usr/bin/env bats
# Who let memory go that its owner did not free, and what a graph's pool held at its peak.
load ../helpers

@test "the caller of a reset" {
	traced "$PROGRAMS/costs" reset
	report
	is '[.implicit_frees[] | [.cause, .bytes, .count]]' "[[\"device-reset\",$((3 << 20)),3]]"
	is '[.implicit_frees[].stack[].function] | map(. != null and test("close_library")) | any' true
	is '[.errors[] | select(.type == "free-after-reset") | .first_free_stack[].function] |
		map(. != null and test("close_library")) | any' true
	"$REPORT" summary "$work/out.gmt" | grep -q '3.00 MiB in 3 allocations went with a device reset on device 0, by close_library'
}

@test "a graph of blocks that take turns: the peak is the driver's" {
	traced "$PROGRAMS/costs" turns
	report
	same high '[.pools[] | select(.pool == "graph") | .used_peak_bytes] | add'
	same high '.totals[0].physical_peak_bytes'
}

@test "handlers and destructors that work after CUDA has ended" {
	[ -x "$PROGRAMS/late_program" ] || skip "no C++ compiler"
	GPUSIM_STREAM=4MiB traced "$PROGRAMS/late_program"
	report
	is '[.process.end, .file.complete]' '["exit",true]'
	same allocations '[.usage[] | select(.kind == "device") | .allocations] | add'
	same live '[.usage[] | select(.kind == "device") | .current_bytes] | add'
	same live '.leaks.exit_bytes'
	# what was refused to make, and the frees that CUDA answered while it unloaded
	is '[.failures[] | [.error, .count]] | unique' '[[4,1]]'
	is '.usage[0] | [.failures, .frees]' "[4,$(($(jq .frees "$work/said") + 4))]"
	is '.errors' '[]'
	# the last cost is a handler's stream, and the ledger has it
	same streams '[.ledger[].objects[] | select(.what == "streams") | .made] | add'
	is '[.ledger[0] | .rows[] | select(.what == "streams") | .bytes]' "[$((4 << 20))]"
	is '[.ledger[0] | .later_calls, .unexplained_bytes]' '[0,0]'
}

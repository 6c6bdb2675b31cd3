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

#!/usr/bin/env bats
# Pools: a program's own has the row of holes that PyTorch has, and what CUDA's keep idle is a row.
load ../helpers

@test "a program's own pool" {
	traced "$PROGRAMS/pools" own
	report
	# 8 MiB in one piece, of which the blocks of 1 MiB at 0, 2 and 4 MiB are in use
	is '[.fragmentation[] | select(.level == "custom") | [.reserved_bytes, .used_bytes, .largest_free_bytes]]' \
		"[[$((8 << 20)),$((3 << 20)),$((3 << 20))]]"
}

@test "what a pool keeps is a row of the ledger" {
	traced "$PROGRAMS/pools" idle
	report
	is '[.ledger[0].rows[] | select(.what == "idle in pools") | .bytes]' "[$((31 << 20))]"
	is '.ledger[0] | .process_used_bytes - .unexplained_bytes - ([.rows[].bytes] | add)' 0
}

@test "physical memory without an address is said" {
	traced "$PROGRAMS/pools" handles
	"$REPORT" summary "$work/out.gmt" |
		grep -q '4.00 MiB of physical memory (cuMemCreate) on device 0 is mapped nowhere; most handles are of create_handle'
}

@test "pools that grow after the latest sample are counted" {
	GPUSIM_MEMORY=16GiB traced "$PROGRAMS/pools" fast
	report
	same used '.ledger[0] | .process_used_bytes + .later_calls * 32 * 1048576'
}

#!/usr/bin/env bats
# Allocators that a program gave to PyTorch: our figures are that allocator's own counters.
load ../helpers

@test "in the place of PyTorch's: what it holds is known, its blocks are not, and that is said" {
	traced "$PROGRAMS/pluggable" current
	report
	is '[.torch[].allocator]' '["pluggable"]'
	same bytes '.torch[0].reserved_bytes'
	same peak '.torch[0].reserved_peak_bytes'
	same total '.torch[0].reserved_total_bytes'
	is '.torch[0] | [.allocated_bytes, .allocated_peak_bytes, .allocations, .ooms, .segments]' \
		'[null,null,null,null,null]'
	is '[.findings[] | select(.id == "pool.pluggable") | .device]' '[0]'
	# 8 MiB of a library's own are not PyTorch's; no level of PyTorch's, no hole, no thrash is made up.
	is '.totals[0].current_bytes - .torch[0].reserved_bytes' $((8 << 20))
	is '[(.fragmentation[] | select(.level == "torch")), (.sites[] | select(.level == "torch")),
		(.findings[] | select(.id == "cache.thrash" or .id == "fragmentation.high"))]' '[]'
}

@test "it is known too where it was used before PyTorch was there" {
	traced "$PROGRAMS/pluggable" early
	report
	is '[.torch[].allocator]' '["pluggable"]'
	same bytes '.torch[0].reserved_bytes'
	same peak '.torch[0].reserved_peak_bytes'
	same total '.torch[0].reserved_total_bytes'
}

@test "a MemPool's: segments and blocks are PyTorch's, to the byte, also after the last of them went" {
	printf '%s\n' 'S 1 2097152' 'A 2 1 0 1048576 0' 'B 3 20971520' 'A 4 3 0 4194304 1' \
		'A 5 3 8388608 4194304 2' 'D 4' 'D 5' 'E 3' > "$work/pool.trace"
	traced "$PROGRAMS/pluggable" mempool "$work/pool.trace"
	report
	same bytes '.torch[0].reserved_bytes - 2097152'
	same peak '.torch[0].reserved_peak_bytes - 2097152'
	is '.torch[0] | [.allocator, .reserved_bytes, .reserved_peak_bytes, .allocated_bytes, .allocations]' \
		"[\"native\",$((2 << 20)),$((22 << 20)),$((1 << 20)),3]"
	is '.fragmentation[] | select(.level == "torch") | .at_peak |
		[.reserved_bytes, .used_bytes, .largest_free_bytes]' "[$((22 << 20)),$((9 << 20)),$((8 << 20))]"
	is '[.findings[] | select(.id == "pool.pluggable")]' '[]'
}

@test "without native stacks nobody can tell: no figure, the memory is in usage" {
	GPUMEMTRACE_STACKS=off traced "$PROGRAMS/pluggable" current
	report
	is '.torch' '[]'
	same bytes '.totals[0].current_bytes - 8388608'
}

#!/usr/bin/env bats
# fragmentation[].at_peak and ooms[].holes: what each level held when most of it was used and at each
# OOM, against figures worked out from the traces alone (peak.py) and by hand.
load ../helpers

memory=$((148245577728 + 1077018624 + (512 << 20))) # as in replay.bats

replayed() {
	local fail=
	[[ $1 != *expandable* ]] || fail=cuMemCreate:1=800
	GPUSIM_FAIL=$fail GPUSIM_MEMORY=$memory traced "$PROGRAMS/replay" "$1" 0 "$work"
}

peak='.fragmentation[] | select(.level == "torch") | .at_peak |
	[.reserved_bytes, .used_bytes, .largest_free_bytes, (.external_percent // 0 | . * 1e6 | round / 1e6)]'

@test "PyTorch's peak: as the trace has it, and as memory_stats() has its height" {
	local trace
	for trace in native expandable streams; do
		rm -f "$work"/*.gmt
		replayed "$TRACES/$trace.trace"
		report
		is "$peak" "$(python3 "$BATS_TEST_DIRNAME/peak.py" "$TRACES/$trace.trace")"
		is '.fragmentation[] | select(.level == "torch") | .at_peak.used_bytes' \
			"$(jq '[.marks[]."allocated_bytes.all.peak"] | max' "$TRACES/$trace.json")"
		is '.fragmentation[] | select(.level == "torch") | .at_peak |
			.free_bytes == .reserved_bytes - .used_bytes and
			(.percent - 100 * .free_bytes / .reserved_bytes | fabs) < 1e-9' true
	done
}

@test "what was there at the peak is freed, whole segments too, and others take their place" {
	# Two segments with a block and a hole each; then everything goes, and smaller ones come.
	printf '%s\n' 'S 1 20971520' 'A 2 1 0 4194304 1' 'A 3 1 8388608 4194304 2' 'S 4 2097152' \
		'A 5 4 1048576 524288 3' 'D 2' 'D 3' 'D 5' 'F 1' 'F 4' 'S 6 20971520' \
		'A 7 6 0 2097152 4' 'D 7' 'F 6' > "$work/gone.trace"
	replayed "$work/gone.trace"
	report
	is "$peak" "$(python3 "$BATS_TEST_DIRNAME/peak.py" "$work/gone.trace")"
	is "$peak" '[23068672,8912896,8388608,40.740741]' # 8 of 13.5 MiB are the largest
	is '.fragmentation[] | select(.level == "torch") | [.reserved_bytes, .used_bytes, .percent]' '[0,0,null]'
	# Three sites kept segments from being given back then; the first two the larger one.
	is '.fragmentation[] | select(.level == "torch") | [.at_peak.pinned_by[].hole_bytes]' \
		'[12582912,12582912,1572864]'
}

@test "the peak reached again is the later one: another layout of the same height" {
	printf '%s\n' 'S 1 20971520' 'A 2 1 0 4194304 1' 'D 2' 'S 3 20971520' 'A 4 3 8388608 4194304 2' \
		'D 4' > "$work/again.trace"
	replayed "$work/again.trace"
	report
	is "$peak" "$(python3 "$BATS_TEST_DIRNAME/peak.py" "$work/again.trace")"
	is "$peak" '[41943040,4194304,20971520,44.444444]'
}

@test "killed after the peak: it is all there" {
	sed 's/^K kill$/D 4\nK kill/' "$OWN_TRACES/killed.trace" > "$work/killed.trace"
	replayed "$work/killed.trace" || true
	report
	is '.process.end' '"killed"'
	sed '/^K/,$d' "$work/killed.trace" > "$work/until"
	is "$peak" "$(python3 "$BATS_TEST_DIRNAME/peak.py" "$work/until")"
}

@test "more was freed since the peak than is kept: the sums stay, the hole is not known" {
	local kept=65536
	many() { # BLOCKS: all are at the peak, all but one are given back
		awk -v n="$1" 'BEGIN { print "S 1 71303168"
			for (i = 0; i < n; i++) print "A", i + 2, 1, 1024 * i, 512, 0
			for (i = 0; i < n - 1; i++) print "D", i + 2 }' > "$work/many.trace"
		replayed "$work/many.trace"
		report
	}
	many $((kept + 1)) # just fits
	is "$peak" "$(python3 "$BATS_TEST_DIRNAME/peak.py" "$work/many.trace")"
	many $((kept + 2))
	is "$peak" "[71303168,$((512 * (kept + 2))),null,0]"
	is '.fragmentation[] | select(.level == "torch") | .at_peak | [.external_percent, .used_bytes]' \
		"[null,$((512 * (kept + 2)))]"
}

@test "each OOM has the levels' figures" {
	GPUSIM_MEMORY=2GiB traced "$PROGRAMS/replay" "$OWN_TRACES/fragmented.trace" 0 "$work"
	report
	# Four segments of 320 MiB, in each a block of 20 MiB and a hole of 300.
	is '[.ooms[0].holes[] | [.level, .reserved_bytes, .used_bytes, .free_bytes, .largest_free_bytes,
		.percent, .external_percent]]' \
		"[[\"torch\",$((1280 << 20)),$((80 << 20)),$((1200 << 20)),$((300 << 20)),93.75,75]]"
	is "$peak" "[$((1280 << 20)),$((1280 << 20)),0,0]" # no hole at all
}

# What a library maps (NCCL's buffers) is driver memory like any other. A segment of PyTorch's is one even
# before a block lies in it.
@test "memory that a library maps is no hole of PyTorch's, an empty segment is" {
	local preload="$SHIM $PROGRAMS/mapping_library.so"
	export MAPPED_MIB=512
	GPUSIM_MEMORY=2560MiB LD_PRELOAD=$preload "$PROGRAMS/replay" "$OWN_TRACES/fragmented.trace" 0 "$work" > "$work/said"
	report
	# As without the library: four segments of 320 MiB, in each a block of 20 MiB and a hole of 300.
	is '[.vmm[].mapped_bytes]' "[$((512 << 20))]"
	is '[.ooms[0].holes[] | select(.level == "torch") | [.reserved_bytes, .used_bytes, .largest_free_bytes,
		.external_percent]]' "[[$((1280 << 20)),$((80 << 20)),$((300 << 20)),75]]"
	is '.ooms[0].fragmentation.largest_free_bytes' $((300 << 20))
	is '[.fragmentation[] | select(.level == "torch") | .largest_free_bytes, .external_percent]' \
		"[$((300 << 20)),75]"
	# A segment that no block was ever cut from: 400 MiB in one piece.
	{
		printf 'S 13 %d\n' $((400 << 20))
		cat "$OWN_TRACES/fragmented.trace"
	} > "$work/empty.trace"
	rm "$work"/*.gmt
	GPUSIM_MEMORY=2960MiB LD_PRELOAD=$preload "$PROGRAMS/replay" "$work/empty.trace" 0 "$work" > "$work/said"
	report
	is '[.ooms[0].holes[] | select(.level == "torch") | [.reserved_bytes, .used_bytes, .largest_free_bytes,
		.external_percent]]' "[[$((1680 << 20)),$((80 << 20)),$((400 << 20)),75]]"
	is '[.fragmentation[] | select(.level == "torch") | .largest_free_bytes, .external_percent]' \
		"[$((400 << 20)),75]"
}

@test "pools and slabs have a peak of their own" {
	printf '%s\n' 'P 1 20971520' 'P 2 52428800' 'Q 1' 'P 3 1048576' > "$work/pool.trace"
	replayed "$work/pool.trace"
	report
	is '[.fragmentation[] | select(.level == "pool") | .at_peak.used_bytes, .used_bytes]' \
		"[$((70 << 20)),$((51 << 20))]"
	is '.pools[0].reserved_peak_bytes as $most | .fragmentation[] | select(.level == "pool") | .at_peak |
		[.reserved_bytes == $most, .largest_free_bytes, .external_percent]' '[true,null,null]'
	printf '%s\n' 'S 1 1048576' 'S 2 1048576' 'S 3 524288' 'F 1' 'F 3' 'F 2' > "$work/slab.trace"
	replayed "$work/slab.trace"
	report
	# 2.5 MiB in two slabs of 2 MiB: the half that is free is in one piece.
	is '.fragmentation[] | select(.level == "slab") | .at_peak | [.reserved_bytes, .used_bytes,
		.largest_free_bytes, .external_percent]' "[$((4 << 20)),$((5 << 19)),$((3 << 19)),0]"
	is '.fragmentation[] | select(.level == "slab") | [.reserved_bytes, .used_bytes]' '[0,0]'
}

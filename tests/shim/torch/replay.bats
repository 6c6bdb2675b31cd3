#!/usr/bin/env bats
# PyTorch's allocator as an H200 recorded it, replayed: our figures are PyTorch's own, at every mark.
load ../helpers

# What was free there after the OOM, what PyTorch held, a context: so the same requests fail here.
memory=$((148245577728 + 1077018624 + (512 << 20)))

# replayed TRACE VARIANT: runs it under the shim; snapshots at the marks are $work/0.gmt, ...
replayed() {
	local fail=
	[[ $1 != *expandable* ]] || fail=cuMemCreate:1=800 # the fabric handle that PyTorch tries first
	GPUSIM_FAIL=$fail GPUSIM_MEMORY=$memory traced "$PROGRAMS/replay" "$1" "$2" "$work"
}

# PyTorch's figures and ours, as one line each.
theirs='[."allocated_bytes.all.current", ."allocated_bytes.all.peak", ."reserved_bytes.all.current",
	."reserved_bytes.all.peak", ."allocation.all.allocated", ."allocation.all.freed",
	."inactive_split_bytes.all.current", .num_alloc_retries, .num_ooms, .num_alloc_retries, .num_ooms]'
ours='.retries as $retries | .torch[0] | [.allocated_bytes, .allocated_peak_bytes, .reserved_bytes,
	.reserved_peak_bytes, .allocations, .frees, .inactive_split_bytes, .alloc_retries, .ooms,
	$retries.attempts, $retries.exhausted]'

# equal_at_marks FIGURES: every mark of the file of PyTorch's figures against its snapshot.
equal_at_marks() {
	local mark marks expected found
	marks=$(jq '.marks | length' "$1")
	[ "$marks" -ge 4 ]
	for ((mark = 0; mark < marks; mark++)); do
		"$REPORT" summary --json "$work/$mark.gmt" > "$work/document"
		expected=$(jq -c ".marks[$mark] | $theirs" "$1")
		found=$(jq -c "$ours" "$work/document")
		[ "$expected" = "$found" ] || {
			echo "$(jq -r ".marks[$mark].tag" "$1"): PyTorch $expected, we $found"
			return 1
		}
	done
}

# equal_snapshot FIGURES: segments and holes of memory_snapshot() at the end.
equal_snapshot() {
	local expected found
	expected=$(jq -c '.snapshot_totals | [.segments, .total_size, .allocated, .largest_inactive]' "$1")
	found=$(jq -c '.torch[0].segments as $n | .fragmentation[] | select(.level == "torch") |
		[$n, .reserved_bytes, .used_bytes, .largest_free_bytes]' "$work/document")
	[ "$expected" = "$found" ] || { echo "PyTorch $expected, we $found"; return 1; }
}

# forwarded: what reached the real hooks under the shim is what reaches them without it.
forwarded() {
	mv "$work/said" "$work/traced"
	GPUSIM_MEMORY=$memory "$PROGRAMS/replay" "$1" "$2" "$work" > "$work/said" 2> /dev/null
	diff "$work/said" "$work/traced"
}

for_each_name() {
	local variant
	for variant in 0 1 2; do
		rm -f "$work"/*.gmt
		replayed "$TRACES/$1.trace" $variant
		equal_at_marks "$TRACES/$1.json"
		equal_snapshot "$TRACES/$1.json"
		is '[.torch[0].allocator, (.torch | length)]' "[\"$2\",1]"
		forwarded "$TRACES/$1.trace" $variant
	done
}

@test "native: a recovered retry, an OOM, a fraction OOM, under each name of the hooks" {
	for_each_name native native
	is '[.ooms[] | [.verdict, .requested_bytes, .api]]' \
		'[["exhausted",8589934592,"cudaMalloc"],["limit",1073741824,null]]'
	is '.retries | [.recovered, .flushed_bytes > 2147483648]' '[1,true]'
}

@test "expandable segments: mappings are the reserve, 800 is no OOM" {
	for_each_name expandable expandable_segments
	is '[.ooms[] | [.verdict, .requested_bytes, .api]]' \
		'[["exhausted",8589934592,"cuMemCreate"],["limit",1073741824,null]]'
}

@test "two streams, a pending free, a graph's private pool" {
	for_each_name streams native
	is '.ooms' '[]'
}

@test "blocks of several threads" {
	GPUSIM_MEMORY=64GiB traced "$PROGRAMS/replay" "$OWN_TRACES/thread.trace" 0 "$work" 8
	report
	# The trace leaves 3 of 5 blocks in two segments: eight times that.
	is '.torch[0] | [.allocations, .frees, .allocated_bytes, .reserved_bytes]' \
		"[40,16,$((8 * (2 + 6 + 1) << 20)),$((8 * 22 << 20))]"
	same blocks '.torch[0] | .allocations + .frees'
}

@test "the usage table's words: current, peak, total allocated and freed; what emptying would give back" {
	# A segment in pieces, one without a block: only that one can go.
	printf '%s\n' 'S 1 20971520' 'A 2 1 0 4194304 0' 'A 3 1 4194304 2097152 1' 'D 3' 'S 4 33554432' \
		'A 5 4 0 33554432 2' 'D 5' 'S 6 2097152' 'F 6' > "$work/words.trace"
	traced "$PROGRAMS/replay" "$work/words.trace" 0 "$work"
	report
	is '.torch[0] | [.allocated_bytes, .allocated_peak_bytes, .allocated_total_bytes, .freed_total_bytes]' \
		"[$((4 << 20)),$((36 << 20)),$((38 << 20)),$((34 << 20))]"
	is '.torch[0] | [.reserved_bytes, .reserved_peak_bytes, .reserved_total_bytes]' \
		"[$((52 << 20)),$((54 << 20)),$((54 << 20))]"
	is '.torch[0] | [.releasable_bytes, .inactive_split_bytes]' "[$((32 << 20)),$((16 << 20))]"
	"$REPORT" summary "$work/out.gmt" > "$work/text"
	grep -Eq 'PyTorch allocated +4.00 MiB +1 +36.00 MiB +38.00 MiB +34.00 MiB' "$work/text"
	grep -Eq 'PyTorch reserved +52.00 MiB +- +54.00 MiB +54.00 MiB +2.00 MiB' "$work/text"
}

@test "two devices apart; blocks of the CPU's allocator are not ours" {
	GPUSIM_DEVICES=2 traced "$PROGRAMS/replay" "$OWN_TRACES/devices.trace" 1 "$work"
	report
	is '[.torch[] | [.device, .allocated_bytes, .reserved_bytes, .allocations]]' \
		"[[0,1048576,2097152,1],[1,3145728,20971520,2]]"
	is '[.sites[] | select(.level == "torch") | .live_bytes] | add' 4194304
}

@test "GPUMEMTRACE_TORCH=off forwards and records no block" {
	GPUMEMTRACE_TORCH=off replayed "$TRACES/native.trace" 0
	report
	same ooms 2
	is '[.torch, [.sites[] | select(.level == "torch")]]' '[[],[]]'
	# Without PyTorch's own events the calls alone tell: one OOM, and no limit's.
	is '.retries | [.attempts, .recovered, .exhausted]' '[2,1,1]'
}

@test "split by what is left: a hole that a line pins, and the advice reads the settings" {
	traced "$PROGRAMS/replay" "$OWN_TRACES/pinned.trace" 0 "$work"
	report
	is '.fragmentation[] | select(.level == "torch") |
		[.reserved_bytes, .used_bytes, .largest_free_bytes, (.pinned_by | length)]' \
		"[$((530 << 20)),$((270 << 20)),$((260 << 20)),1]"
	is '[.findings[] | select(.id == "fragmentation.high") | .advice[] |
		select(test("max_split_size_mb|expandable_segments"))] | length > 0' true
	PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True,max_split_size_mb:128 \
		traced "$PROGRAMS/replay" "$OWN_TRACES/pinned.trace" 0 "$work"
	report
	is '[.findings[] | select(.id == "fragmentation.high") | .advice[] |
		select(test("^set |PYTORCH_CUDA_ALLOC_CONF="))]' '[]'
}

@test "backend:cudaMallocAsync: no hook is called, the tensors are counted all the same" {
	traced "$PROGRAMS/replay" "$OWN_TRACES/async.trace" 0 "$work"
	report
	is '.torch[0] | [.allocator, .allocated_bytes, .allocated_peak_bytes, .allocations, .frees]' \
		"[\"cudaMallocAsync\",$((40 << 20)),$((70 << 20)),3,1]"
	is '.torch[0].reserved_bytes == .pools[0].reserved_bytes' true
	is '[.fragmentation[] | select(.level == "torch")]' '[]'
	# By the history too: what was allocated is known, what the pool reserved is not.
	rm "$work"/*.gmt
	GPUMEMTRACE_EVENTS=all traced "$PROGRAMS/replay" "$OWN_TRACES/async.trace" 0 "$work"
	report
	"$REPORT" summary --json --at "$(jq .process.duration_s "$work/document")" "$work/out.gmt" > "$work/then"
	mv "$work/then" "$work/document"
	is '.torch[0] | [.allocator, .allocated_bytes, .allocated_peak_bytes, .allocations, .frees,
		.reserved_bytes]' "[\"cudaMallocAsync\",$((40 << 20)),$((70 << 20)),3,1,null]"
}

@test "PYTORCH_NO_CUDA_MEMORY_CACHING=1: tensors are allocations, none is a segment" {
	PYTORCH_NO_CUDA_MEMORY_CACHING=1 traced "$PROGRAMS/replay" "$OWN_TRACES/uncached.trace" 0 "$work"
	report
	is '[.torch, [.fragmentation[] | select(.level == "torch")]]' '[[],[]]'
	is '.totals[0].current_bytes' $((3 << 20))
}

@test "a program killed between two blocks has told everything" {
	traced "$PROGRAMS/replay" "$OWN_TRACES/killed.trace" 0 "$work" || true
	report
	is '.process.end' '"killed"'
	is '.torch[0] | [.allocated_bytes, .reserved_bytes, .allocations, .frees]' \
		"[$((3 << 20)),$((22 << 20)),3,1]"
}

@test "torch-snapshot: what PyTorch maps or unmaps at once is one event, as in its own" {
	printf '%s\n' 'R 1 1073741824 20971520' 'M 1 0 20971520' 'A 2 1 0 20971520 0' 'M 1 20971520 62914560' \
		'A 3 1 20971520 62914560 0' 'D 3' 'U 1 20971520 62914560' 'D 2' > "$work/mapped.trace"
	PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True GPUSIM_FAIL=cuMemCreate:1=800 \
		traced "$PROGRAMS/replay" "$work/mapped.trace" 0 "$work"
	report
	"$REPORT" export --format torch-snapshot -o "$work/snapshot" "$work/out.gmt"
	run python3 -c 'import pickle, sys
events = pickle.load(open(sys.argv[1], "rb"))["device_traces"][0]
first = next(e["addr"] for e in events if e["action"] == "segment_map")
print(*((e["action"], e["addr"] - first, e["size"]) for e in events), sep="\n")' "$work/snapshot"
	[ "$output" = "('segment_map', 0, 20971520)
('alloc', 0, 20971520)
('segment_map', 20971520, 62914560)
('alloc', 20971520, 62914560)
('free_requested', 20971520, 62914560)
('free_completed', 20971520, 62914560)
('segment_unmap', 20971520, 62914560)
('free_requested', 0, 20971520)
('free_completed', 0, 20971520)" ]
}

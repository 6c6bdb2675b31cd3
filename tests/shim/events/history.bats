#!/usr/bin/env bats
# The complete history: exact at any moment, whole after kills, bounded, and never in the program's way.
load ../helpers

setup() {
	work=$(mktemp -d)
	export LD_LIBRARY_PATH=$SIM GPUMEMTRACE_OUT=$work/out.gmt GPUMEMTRACE_QUIET=1 GPUMEMTRACE_EVENTS=all
}

teardown() {
	umount "$work/small" 2> /dev/null || true
	rm -rf "$work"
}

# PyTorch's allocator as an H200 recorded it; snapshots at its marks are $work/0.gmt, ...
replayed() {
	local fail=
	[[ $1 != *expandable* ]] || fail=cuMemCreate:1=800
	GPUSIM_FAIL=$fail GPUSIM_MEMORY=$((148245577728 + 1077018624 + (512 << 20))) \
		traced "$TORCH/replay" "$TRACES/$1.trace" 0 "$work"
}

# at TIME FILE [OPTION...]: the document of that moment, in $work/then.
at() {
	"$REPORT" summary --json --at "$1" "${@:3}" "$2" > "$work/then"
}

# equal [ring]: that document is the one in $work/document.
equal() {
	python3 "$BATS_TEST_DIRNAME/compare.py" "$work/then" "$work/document" "$@"
}

# snapshots_equal FILE [ring]: at the time of each mark the file says what the snapshot taken there holds.
snapshots_equal() {
	local marks number=0 time
	marks=$("$REPORT" summary --json "$1" | jq -r '.marks[] | select(.name != "snapshot") | .time_s')
	[ "$(wc -l <<< "$marks")" -ge 4 ]
	for time in $marks; do
		"$REPORT" summary --json "$work/$number.gmt" > "$work/document"
		at "$time" "$1"
		equal "${@:2}" || { echo "mark $number, at $time s"; return 1; }
		number=$((number + 1))
	done
}

@test "native, expandable and streams: --at each mark is the snapshot taken there" {
	local trace
	for trace in native expandable streams; do
		replayed $trace
		snapshots_equal "$work/out.gmt"
		rm "$work"/*.gmt*
	done
}

@test "the zstd form says the same, holds the plain one to the byte, and stands alone" {
	replayed native
	"$REPORT" export --format zst -o "$work/packed" "$work/out.gmt"
	"$REPORT" summary --json "$work/out.gmt" | sed "s#$work/out.gmt#$work/packed#" > "$work/document"
	if command -v zstd > /dev/null; then
		zstd -dc "$work/packed" | cmp - <(cat "$work/out.gmt" "$work/out.gmt.events")
	fi
	rm "$work"/out.gmt*
	"$REPORT" summary --json "$work/packed" | sed "s#$work/out.gmt#$work/packed#" | cmp - "$work/document"
	snapshots_equal "$work/packed"
}

@test "the compressed history in place of the plain one" {
	replayed native
	"$REPORT" export --format zst -o "$work/out.gmt.events.zst" "$work/out.gmt"
	rm "$work/out.gmt.events"
	snapshots_equal "$work/out.gmt"
}

@test "a history by its own name stands for its file; one of another process is refused" {
	traced "$PROGRAMS/runtime13_O2"
	"$REPORT" summary --json "$work/out.gmt" > "$work/document"
	"$REPORT" summary --json "$work/out.gmt.events" | cmp - "$work/document"
	mv "$work/out.gmt.events" "$work/other"
	traced "$PROGRAMS/runtime13_O2"
	mv "$work/other" "$work/out.gmt.events"
	"$REPORT" summary --json "$work/out.gmt" > "$work/document"
	is '[.file.warnings[] | select(test("history of another process"))] | length' 1
}

@test "ring: exact too while nothing has fallen out of it" {
	GPUMEMTRACE_EVENTS=ring replayed native
	snapshots_equal "$work/out.gmt"
	rm "$work"/*.gmt
	GPUMEMTRACE_EVENTS=ring replayed streams
	snapshots_equal "$work/out.gmt"
}

@test "10 kills of four allocating threads: the history and the file end alike" {
	local i
	for i in $(seq 10); do
		killed
		report
		at "$(jq .process.duration_s "$work/document")" "$work/out.gmt"
		jq '.process.end = "killed"' "$work/then" > "$work/end"
		python3 "$BATS_TEST_DIRNAME/../killed.py" "$work/books" "$work/end"
	done
}

@test "a fork's child that uses CUDA has a history of its own, the parent's goes on" {
	traced "$GUEST/guest_forks" record
	[ "$(ls "$work" | grep -c 'events$')" -ge 2 ]
	for file in "$work"/out.gmt*.events; do
		"$REPORT" summary --json "${file%.events}" > "$work/document"
		is '[.file.warnings[] | select(test("history"))] | length' 0
		at "$(jq .process.duration_s "$work/document")" "${file%.events}"
		equal
	done
}

@test "the cap: recording goes on, what is lost is counted and said, moments before it can be told" {
	GPUMEMTRACE_MAX_EVENTS=128KiB traced "$GUEST/guest_fill"
	[ "$(stat -c %s "$work/out.gmt.events")" -le $((128 << 10)) ]
	report
	is .file.dropped_events 0
	is '[.file.warnings[] | select(test("GPUMEMTRACE_MAX_EVENTS"))] | length' 1
	is '.tracer.history.lost > 0' true
	at "$(jq '.tracer.history.ends_s / 2' "$work/document")" "$work/out.gmt"
	run "$REPORT" summary --at "$(jq .process.duration_s "$work/document")" "$work/out.gmt"
	[ "$status" -eq 3 ]
	[[ $output == *"give an earlier moment"* ]]
	"$REPORT" export --format perfetto -o "$work/trace" "$work/out.gmt" 2> "$work/errors"
	grep -q 'the history of .* ends after .* left out' "$work/errors"
}

@test "several files are packed each into one of its own" {
	local rank packed
	for rank in 0 1; do
		RANK=$rank GPUMEMTRACE_OUT=$work/$rank.gmt traced "$PROGRAMS/runtime13_O2"
		"$REPORT" export --format zst -o "$work/alone$rank" "$work/$rank.gmt"
	done
	"$REPORT" export --format zst -o "$work/job.gmt.zst" "$work/0.gmt" "$work/1.gmt" > "$work/said"
	for rank in 0 1; do
		packed=$work/job.gmt.rank$rank.zst
		cmp "$packed" "$work/alone$rank"
		grep -qx "$packed: $work/$rank.gmt" "$work/said"
	done
	[ ! -e "$work/job.gmt.zst" ]
}

@test "a damaged history is said to be one, and the file is fine without it" {
	replayed native
	report
	printf 'x' | dd of="$work/out.gmt.events" bs=1 seek=4096 conv=notrunc status=none
	"$REPORT" summary --json "$work/out.gmt" | cmp - "$work/document"
	run "$REPORT" summary --at "$(jq .process.duration_s "$work/document")" "$work/out.gmt"
	[ "$status" -eq 3 ]
	[[ $output == *"has a damaged part before that moment"* ]]
	"$REPORT" export --format torch-snapshot -o "$work/snapshot" "$work/out.gmt" 2> "$work/errors"
	grep -q 'has a damaged part; what comes after that is left out' "$work/errors"
}

@test "a disk that fills up: the file goes on without a history, and no SIGBUS" {
	mkdir "$work/small"
	mount -t tmpfs -o size=2m none "$work/small" 2> /dev/null || skip "mounting a tmpfs takes root"
	GPUMEMTRACE_OUT=$work/small/out.gmt traced python3 -c 'import ctypes
shim = ctypes.CDLL(None)
shim.gpumemtrace_pool_alloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
shim.gpumemtrace_pool_free.argtypes = [ctypes.c_void_p]
for i in range(100000):
    shim.gpumemtrace_pool_alloc(4096, 1 + i % 512, 0)
    shim.gpumemtrace_pool_free(4096)'
	"$REPORT" summary --json "$work/small/out.gmt" > "$work/document"
	is '[.sites[].frees] | add' 100000
	is .process.end '"exit"'
	is '.tracer.history.lost > 0' true
	is '[.file.warnings[] | select(test("disk was full"))] | length' 1
}

@test "an older file keeps its history under its new name" {
	traced "$PROGRAMS/runtime13_O2"
	cp "$work/out.gmt.events" "$work/first"
	traced "$PROGRAMS/runtime13_O2"
	cmp "$work/first" "$work/out.gmt.old1.events"
	"$REPORT" summary --json "$work/out.gmt.old1" > "$work/document"
	is '[.file.warnings[] | select(test("history"))] | length' 0
	at "$(jq .process.duration_s "$work/document")" "$work/out.gmt.old1"
	equal
}

@test "a network filesystem: the history lives on local disk, and moves with its file" {
	mkdir "$work/network" "$work/local"
	export NETWORK_DIRECTORY=$work/network TMPDIR=$work/local GPUMEMTRACE_OUT=$work/network/out.gmt
	SHIM=$GUEST/hook_statfs.so:$SHIM
	traced "$PROGRAMS/runtime13_O2"
	[ "$(ls "$work/local" | wc -l)" -eq 0 ]
	[ "$(head -c 7 "$work/network/out.gmt.events")" = GMEVENT ]
	traced "$GUEST/guest_ends" abort alone 2> /dev/null || true
	[ "$(head -c 7 "$work/network/out.gmt.old1.events")" = GMEVENT ]
	head -n 1 "$work/network/out.gmt.events" | grep -q '^gpumemtrace-pointer 1$'
	"$REPORT" summary --json "$work/network/out.gmt" > "$work/document"
	is .process.end '"killed"'
	at "$(jq .process.duration_s "$work/document")" "$work/network/out.gmt"
	equal
}

@test "no moment: after the end, without a history, a format that needs one" {
	traced "$PROGRAMS/runtime13_O2"
	run "$REPORT" summary --at 1h "$work/out.gmt"
	[ "$status" -eq 3 ]
	[[ $output == *"ends after"*"give an earlier moment"* ]]
	rm "$work"/out.gmt*
	GPUMEMTRACE_EVENTS=off traced "$PROGRAMS/runtime13_O2"
	run "$REPORT" summary --at 0 "$work/out.gmt"
	[ "$status" -eq 3 ]
	[[ $output == *"GPUMEMTRACE_EVENTS=all"* ]]
	run "$REPORT" export --format zst -o "$work/packed" "$work/out.gmt"
	[ "$status" -eq 2 ]
	[[ $output == *"GPUMEMTRACE_EVENTS=all"* ]]
	[ ! -e "$work/packed" ]
}

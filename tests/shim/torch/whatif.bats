#!/usr/bin/env bats
# PyTorch's allocator under other settings, predicted from one recording and measured by PyTorch 2.11 on an
# H200 under another. The figures beside the traces are PyTorch's own.
load ../helpers
bats_require_minimum_version 1.5.0

memory=$((148245577728 + 1077018624 + (512 << 20)))

# recorded TRACE [MARK]: the trace under the shim with its whole history, up to the mark
recorded() {
	local fail= trace=$TRACES/$1.trace
	[[ $1 != *expandable* ]] || fail=cuMemCreate:1=800 # the fabric handle that PyTorch tries first
	if [ -n "${2-}" ]; then
		sed "/^K $2/q" "$trace" > "$work/part.trace"
		trace=$work/part.trace
	fi
	GPUMEMTRACE_EVENTS=all GPUSIM_FAIL=$fail GPUSIM_MEMORY=$memory \
		traced "$PROGRAMS/replay" "$trace" 0 "$work"
}

# whatif SETTINGS [ARG...]: the rows, in $work/document
whatif() {
	local settings=$1
	shift
	"$REPORT" whatif --json --conf "$settings" "$@" "${file-$work/out.gmt}" > "$work/document"
}

# measured TRACE MARK: PyTorch's peaks at that mark, reserved and allocated
measured() {
	jq -c ".marks[] | select(.tag == \"$2\") |
		[.\"reserved_bytes.all.peak\", .\"allocated_bytes.all.peak\"]" "$TRACES/$1.json"
}

peaks='.whatif[] | [.reserved_peak_bytes, .allocated_peak_bytes]'

@test "expandable segments are predicted from a run without them, and the other way round" {
	for trace in native expandable; do
		recorded $trace trained
		whatif "default;expandable_segments:True"
		is '.whatif | map(.conf)' '["default","expandable_segments:True"]'
		is '.whatif_run.reproduced' true
		[ "$(jq -c "$peaks" "$work/document")" = "$(measured native trained
			measured expandable trained)" ]
		is '[.whatif[] | .retries, .ooms, .oom_at_s, .oom_site]' '[0,0,null,null,0,0,null,null]'
		is '[.whatif[] | .reserved_peak_low_bytes <= .reserved_peak_bytes and
			.reserved_peak_bytes <= .reserved_peak_high_bytes] | all' true
	done
}

@test "under its own setting a run's peaks, retries and refusals are PyTorch's" {
	for trace in native expandable; do
		local conf=default
		[ $trace = native ] || conf=expandable_segments:True
		recorded $trace
		whatif $conf
		is '.whatif_run.reproduced and .whatif[0].exact' true
		[ "$(jq -c "$peaks" "$work/document")" = "$(measured $trace end)" ]
		is '.whatif[0] | [.retries, .ooms, .fits]' \
			"$(jq -c '.marks[-1] | [.num_alloc_retries, .num_ooms, false]' "$TRACES/$trace.json")"
	done
}

@test "streams and a captured graph are told apart by the segments that were taken" {
	recorded streams
	whatif default
	is '.whatif_run.reproduced' true
	is "$peaks" "$(measured streams end)"
}

@test "a snapshot says what a recording does not: it is exact for other settings, too" {
	recorded native trained
	"$REPORT" export --format torch-snapshot -o "$work/out.pickle" "$work/out.gmt"
	file=$work/out.pickle whatif "default;expandable_segments:True"
	is '[.whatif[].exact] | all' true
	[ "$(jq -c "$peaks" "$work/document")" = "$(measured native trained
		measured expandable trained)" ]
}

@test "a smaller device, or a fraction of it, ends the run where the last request does not fit" {
	recorded native trained
	whatif default --capacity 1GiB
	is '.whatif[0].fits' true
	whatif default --capacity 100MiB
	is '.whatif[0] | [.ooms, .fits, .retries, .oom_at_s > 0]' '[1,false,1,true]'
	is '.whatif[0].reserved_peak_bytes <= 100 * 1048576' true
	[ "$(jq '.whatif[0].oom_site' "$work/document")" != null ]
	whatif default --capacity 1GiB --fraction 0.1
	is '.whatif[0] | [.ooms, .fits]' '[1,false]'
}

@test "without settings there is a list, the best of it, and what no setting can undercut" {
	recorded native trained
	"$REPORT" whatif --json "$work/out.gmt" > "$work/document"
	is '.whatif | length >= 24' true
	is '.whatif_run as $run | [.whatif[] | select(.conf == $run.best) | .reserved_peak_bytes] ==
		[[.whatif[].reserved_peak_high_bytes] | min]' true
	is '.whatif_run | .lower_bound_bytes <= .plan_peak_bytes' true
	is '.whatif_run.lower_bound_bytes as $b | [.whatif[].allocated_peak_bytes >= $b] | all' true
	"$REPORT" whatif "$work/out.gmt" | grep -q '^Best: '
	"$REPORT" whatif --capacity 100MiB "$work/out.gmt" | grep -q '^None fits: .*gets furthest, out of memory after'
	"$REPORT" whatif --conf default --capacity 100MiB "$work/out.gmt" | grep -q '^Result: default does not fit'
}

@test "what cannot be replayed is refused with a sentence" {
	recorded native trained
	run -2 "$REPORT" whatif --conf backend:own "$work/out.gmt"
	[[ $output == *"another allocator"* ]]
	run -2 "$REPORT" whatif --conf release_threshold:much "$work/out.gmt"
	[[ $output == *"is a size"* ]]
	run -2 "$REPORT" whatif --conf max_split_size_mb:3 "$work/out.gmt"
	[[ $output == *"at least 20"* ]]
	run -2 "$REPORT" whatif --conf no_such_setting:1 "$work/out.gmt"
	run -2 "$REPORT" whatif --torch 2.5 "$work/out.gmt"
	[[ $output == *"2.6 to 2.12"* ]]
	GPUMEMTRACE_EVENTS=off GPUSIM_MEMORY=$memory traced "$PROGRAMS/replay" "$work/part.trace" 0 "$work"
	run -3 "$REPORT" whatif "$work/out.gmt"
	[[ $output == *GPUMEMTRACE_EVENTS=all* ]]
}

@test "memory that another allocator took is refused with that allocator's name, and what to do" {
	local name said
	while read -r name said; do
		GPUMEMTRACE_EVENTS=all traced "$PROGRAMS/allocators" "$name"
		run -3 "$REPORT" whatif "$work/out.gmt"
		[[ $output == *"$said"* ]] || { echo "$name: $output"; return 1; }
		[[ $output != *"no complete history"* ]]
	done <<- 'END'
		cupy CuPy's memory pool
		rmm RMM's pool or arena
		bfc a BFC allocator
		plain no settings to replay
	END
}

@test "snapshots that PyTorch wrote: every block at its address, and the statistics of the run" {
	for mode in native expandable; do
		local figures=$SNAPSHOTS/torch-2.11-$mode.json
		file=$SNAPSHOTS/torch-2.11-$mode.pickle whatif \
			"$(jq -r 'if .conf == "" then "default" else .conf end' "$figures")" --torch 2.11
		is '.whatif_run | [.reproduced, .torch, .misplaced_blocks == 0 or .conf != "default"]' \
			'[true,"2.11",true]'
		is '.whatif[0] | [.reserved_peak_bytes, .allocated_peak_bytes, .retries, .ooms, .exact]' \
			"$(jq -c '.marks[-1] | [."reserved_bytes.all.peak", ."allocated_bytes.all.peak",
				.num_alloc_retries, .num_ooms, true]' "$figures")"
	done
}

@test "a run whose frees waited for streams is told as it was, and not called exact for another one" {
	local figures=$SNAPSHOTS/torch-2.11-streams.json
	file=$SNAPSHOTS/torch-2.11-streams.pickle whatif default
	is '.whatif_run.reproduced' true
	is '.whatif[0] | [.reserved_peak_bytes, .exact]' \
		"$(jq -c '.marks[-1] | [."reserved_bytes.all.peak", false]' "$figures")"
	is '.whatif[0].why | test("waited for streams")' true
}

@test "a moment: what was recorded until then" {
	"$REPORT" whatif --conf default --at 5.29 "$SNAPSHOTS/torch-2.11-native.pickle" > "$work/said"
	[ "$(jq '.marks[0]."reserved_bytes.all.peak"' "$SNAPSHOTS/torch-2.11-native.json")" = \
		$((110 << 20)) ]
	grep -q '^Result: default with 110.0 MiB' "$work/said"
	! grep -q 'out of memory' "$work/said"
}

# The driver's pool's own figures at the end of a kind of program, under a threshold.
pool_figures() {
	GPUSIM_MEMORY=140GiB "$PROGRAMS/pool_program" "$@" | sed 's/ /,/; s/.*/[&]/'
}

@test "a program of cudaMallocAsync under other release thresholds reserves what is predicted" {
	local kind recorded
	for kind in 2 4 7 8 9 10; do
		recorded=default
		[ $kind != 7 ] || recorded=max
		GPUMEMTRACE_EVENTS=all GPUSIM_MEMORY=140GiB traced "$PROGRAMS/pool_program" $kind $recorded
		whatif "default;release_threshold:64MiB;release_threshold:1GiB;release_threshold:max"
		is '.whatif_run.reproduced' true
		[ "$(jq -c "$peaks" "$work/document")" = "$(pool_figures $kind 0
			pool_figures $kind $((64 << 20))
			pool_figures $kind $((1 << 30))
			pool_figures $kind max)" ]
		is '[.whatif[] | .reserved_peak_low_bytes <= .reserved_peak_bytes and
			.reserved_peak_bytes <= .reserved_peak_high_bytes] | all' true
	done
}

@test "without settings a program of cudaMallocAsync has a list of thresholds, and none of PyTorch's" {
	GPUMEMTRACE_EVENTS=all GPUSIM_MEMORY=140GiB traced "$PROGRAMS/pool_program" 4 default
	"$REPORT" whatif --json "$work/out.gmt" > "$work/document"
	is '.whatif | map(.conf) | [length, .[0], .[-1]]' '[7,"release_threshold:0","release_threshold:max"]'
	is '.whatif_run | [.conf, (.notes[0] | test("not public"))]' '["release_threshold:0",true]'
	run -2 "$REPORT" whatif --conf expandable_segments:True "$work/out.gmt"
	[[ $output == *"release_threshold:SIZE"* ]]
	"$REPORT" whatif --capacity 300MiB --json --conf default "$work/out.gmt" > "$work/document"
	is '.whatif[0] | [.fits, .ooms]' '[false,1]'
	GPUSIM_MEMORY=140GiB traced "$PROGRAMS/pool_program" 4 default
	run -3 "$REPORT" whatif "$work/out.gmt"
	[[ $output == *GPUMEMTRACE_EVENTS=all* ]]
}

@test "PyTorch's cudaMallocAsync backend, as it was measured on an H200" {
	local program figures
	while read -r program figures; do
		file=$SNAPSHOTS/$program.pickle whatif backend:cudaMallocAsync --torch 2.11
		is "$peaks" "$figures"
		is '.whatif[0] | [.exact, (.why | type)]' '[false,"string"]' # another run may keep the device busy
	done <<- 'END'
		flushed [2684354560,2656392533]
		holes_under_cap [2650800128,1887436800]
	END
	file=$SNAPSHOTS/flushed.pickle whatif backend:cudaMallocAsync --capacity 2600MiB
	is '.whatif[0].fits' null
	file=$SNAPSHOTS/flushed.pickle whatif backend:cudaMallocAsync --capacity 2000MiB
	is '.whatif[0].fits' false
}

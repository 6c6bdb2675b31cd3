#!/usr/bin/env bats
# whatif on recordings that have what PyTorch's allocator traces of its blocks: what was asked for,
# streams, pools and frees that wait. Programs on the stand-in for the allocator, each recorded under one
# setting, predicted for another, and run under that.

load ../shim/helpers
bats_require_minimum_version 1.5.0

# ran PROGRAM [ARG...]: in $work/out.gmt; its output in $work/said
ran() {
	rm -f "$work"/out.gmt*
	GPUMEMTRACE_EVENTS=${events-all} LD_LIBRARY_PATH=$DOUBLE:$SIM LD_PRELOAD=$SHIM \
		"$DOUBLE/torch_requests" "$@" > "$work/said"
}

# reserved: the peak of the run
reserved() {
	"$REPORT" summary --json "$work/out.gmt" | jq '.torch[0].reserved_peak_bytes'
}

# whatif: both settings from the last run, in $work/document
whatif() {
	"$REPORT" whatif --json --conf "default;expandable_segments:True" "$work/out.gmt" > "$work/document"
}

@test "sizes, streams and pools are known: both settings are predicted to the byte from either" {
	for program in sizes streams graph; do
		ran $program
		plain=$(reserved)
		ran $program expandable
		expandable=$(reserved)
		[ "$plain" != "$expandable" ]
		for setting in "" expandable; do
			ran $program $setting
			[ "$(cat "$work/said")" = 1 ]
			whatif
			is '.whatif_run.reproduced' true
			is '[.whatif[] | .reserved_peak_bytes, .exact, .why]' "[$plain,true,null,$expandable,true,null]"
		done
	done
}

@test "frees that waited for a stream are replayed as they were" {
	for setting in "" expandable; do
		ran waits $setting
		whatif
		is '.whatif_run.reproduced' true
		is "[.whatif[] | .reserved_peak_bytes] | index($(reserved)) != null" true
		is '[.whatif[] | .exact] | any' false
		is '[.whatif[].why | test("30 freed blocks waited for streams")] | all' true
	done
}

@test "without the allocator's trace sizes are inferred as before" {
	for way in alone changed; do
		ran sizes $way
		[ "$(cat "$work/said")" = 0 ]
		whatif
		is '.whatif | map(.exact)' '[true,false]'
		is '.whatif[1].why | test("sizes that were asked for are not recorded")' true
	done
}

@test "a trace that leaves out a block is not used at all" {
	for block in 1 200; do
		ran sizes $block
		[ "$(cat "$work/said")" = 1 ]
		whatif
		is '.whatif | map(.exact)' '[true,false]'
		is '.whatif[1].why | test("sizes that were asked for are not recorded")' true
	done
}

@test "the allocator is left alone where no complete history is kept" {
	for events in ring off; do
		ran sizes
		[ "$(cat "$work/said")" = 0 ]
	done
	events=all GPUMEMTRACE_SAMPLE=1MiB ran sizes
	[ "$(cat "$work/said")" = 0 ]
}

@test "every moment of such a history can be shown, and other exports read it" {
	ran streams expandable
	"$REPORT" summary --json "$work/out.gmt" > "$work/document"
	end=$(jq .duration_s "$work/document")
	"$REPORT" summary --json --at "$end" "$work/out.gmt" |
		jq -e '.torch[0].allocated_bytes == 0' > /dev/null
	"$REPORT" export --format sqlite -o "$work/out.sqlite" "$work/out.gmt"
	"$REPORT" export --format zst -o "$work/out.zst" "$work/out.gmt"
	cp "$work/document" "$work/plain"
	whatif
	mv "$work/document" "$work/before"
	"$REPORT" whatif --json --conf "default;expandable_segments:True" "$work/out.zst" > "$work/document"
	[ "$(jq -c .whatif "$work/document")" = "$(jq -c .whatif "$work/before")" ]
}

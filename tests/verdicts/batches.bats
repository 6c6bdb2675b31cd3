#!/usr/bin/env bats
# whatif --target-batch: from two recordings on the stand-in for PyTorch's allocator what a third run
# reserves, which is then run.

load ../shim/helpers
bats_require_minimum_version 1.5.0

# recorded BATCH [STEPS [MODE]]: in $work/BATCH.gmt
recorded() {
	GPUMEMTRACE_EVENTS=all GPUMEMTRACE_OUT=$work/$1.gmt LD_LIBRARY_PATH=$DOUBLE:$SIM LD_PRELOAD=$SHIM \
		"$DOUBLE/torch_batches" "$1" "${2-4}" ${3-}
}

# predicted BATCH SETTING: the row, in $work/document
predicted() {
	"$REPORT" whatif --json --conf "$2" --batch 4,8 --target-batch "$1" "$work/4.gmt" "$work/8.gmt" \
		> "$work/document"
}

# reserved BATCH: what a run with it reserved at its peak
reserved() {
	"$REPORT" summary --json "$work/$1.gmt" | jq '.torch[0].reserved_peak_bytes'
}

@test "three other batches are predicted from two, and then run" {
	recorded 4
	recorded 8
	for batch in 2 12 24; do
		predicted $batch default
		recorded $batch
		is '.whatif_run.target_batch' $batch
		if [ -e "$DOUBLE/libtorch_cuda.so" ]; then # the recordings have what was asked for
			is '.whatif[0].reserved_peak_bytes' "$(reserved $batch)"
		else # within 2 %: a recorded block may hold up to 1 MiB more than that
			is "$(reserved $batch) as \$r | .whatif[0].reserved_peak_bytes / \$r | . >= 0.98 and . <= 1.02" true
		fi
		is '.whatif[0].exact' false
		[[ "$(jq -r '.whatif[0].why' "$work/document")" == *"batch $batch lie on lines"* ]]
	done
}

@test "another setting and another batch at once" {
	recorded 4
	recorded 8
	predicted 24 expandable_segments:True
	recorded 24 4 expandable
	is "$(reserved 24) as \$r | .whatif[0] | .reserved_peak_low_bytes <= \$r and \$r <= .reserved_peak_high_bytes" true
}

@test "a batch that does not fit is told, and with more memory it does" {
	recorded 4
	recorded 8
	recorded 24
	local peak
	peak=$(reserved 24)
	"$REPORT" whatif --json --conf default --capacity 100GiB --batch 8,4 --target-batch 24 "$work/8.gmt" "$work/4.gmt" \
		> "$work/document"
	is '.whatif[0].fits' true
	"$REPORT" whatif --json --conf default --capacity $((peak / 2)) --batch 4,8 --target-batch 24 "$work/4.gmt" "$work/8.gmt" \
		> "$work/document"
	is '.whatif[0] | [.fits, .ooms]' '[false,1]'
}

@test "runs that differ, and what is missing, are refused with a sentence" {
	recorded 4
	recorded 8 5
	run -3 "$REPORT" whatif --batch 4,8 --target-batch 16 "$work/4.gmt" "$work/8.gmt"
	[[ $output == *"do not make the same requests"* ]]
	run -2 "$REPORT" whatif --batch 4 --target-batch 16 "$work/4.gmt"
	[[ $output == *"two files"* ]]
	run -2 "$REPORT" whatif --batch 4,4 --target-batch 16 "$work/4.gmt" "$work/8.gmt"
	[[ $output == *"different batches"* ]]
}

#!/usr/bin/env bats
# A job of a thousand ranks, copied from one of eight on the simulated GPU (see run.sh for what it costs).

load ../../shim/helpers

@test "a thousand files are one job" {
	local rank expected=0
	export GPUSIM_DEVICES=8
	for rank in 0 1 2 3 4 5 6 7; do
		RANK=$rank GPUMEMTRACE_OUT=$work/small/rank%r.gmt LD_PRELOAD=$SHIM "$JOBS/job_rank" \
			device "$rank" keep $((100 << 20)) keep $(((rank + 1) << 20))
		expected=$((expected + ((101 + rank) << 20)))
	done
	"$COPY" 1000 "$work/job" "$work"/small/*.gmt
	echo broken > "$work/job/5/rank40.gmt"
	# what is asked of the large document, once
	{ "$REPORT" summary --json "$work/job" 2> "$work/error" || echo $? > "$work/status"; } |
		jq '{job, ranks: [.runs[].process.rank]}' > "$work/document"
	[ "$(cat "$work/status")" -eq 3 ]
	grep -q 'job/5/rank40.gmt: is ' "$work/error"
	is .job.ranks 999
	is '.ranks | length == 999 and . == sort and length == (unique | length)' true
	# a hundred and twenty-five times eight, but for rank 40, which is a rank 0
	is '[.job.totals[].current_bytes] | add' $((125 * expected - (101 << 20)))
	is '[.job.findings[] | select(.id == "leak.exit") | .ranks | length] | unique' '[999]'
	"$REPORT" summary "$work/job" > "$work/said" 2> /dev/null || [ $? -eq 3 ]
	grep -q 'ranks 0-39, 41-999 (999 of 999)' "$work/said"
	grep -q '^All 999 processes' "$work/said"
}

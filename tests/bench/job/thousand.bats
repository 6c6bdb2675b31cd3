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

# What is asked of 2,000 files: the answer before the rows, jobs apart, within 20 s of processor time (it takes 2).
@test "two jobs of a thousand files each: findings and the worst ranks come before the rows" {
	local job rank files
	mkdir "$work/jobs"
	export GPUSIM_DEVICES=8
	for job in 71 72; do
		files=()
		for rank in 0 1 2 3; do
			SLURM_JOB_ID=$job RANK=$rank GPUMEMTRACE_OUT=$work/small$job/rank%r.gmt LD_PRELOAD=$SHIM "$JOBS/job_rank" \
				device "$rank" keep $((100 << 20))
		done
		for rank in $(seq 0 999); do
			files+=("$work/small$job/rank$((rank % 4)).gmt")
		done
		if [ "$job" = 72 ]; then # one rank of them holds more
			SLURM_JOB_ID=72 RANK=4 GPUMEMTRACE_OUT=$work/large.gmt LD_PRELOAD=$SHIM "$JOBS/job_rank" \
				device 1 keep $((100 << 20)) keep $((900 << 20))
			files[321]=$work/large.gmt
		fi
		"$COPY" 1000 "$work/jobs/job$job" "${files[@]}"
	done
	(ulimit -t 20 && COLUMNS=80 "$PLAIN_REPORT" summary "$work/jobs" > "$work/said")
	[ "$(head -n 1 "$work/said")" = "2 jobs, 2000 processes" ]
	# the worse job is the first, and nothing of a file comes before both
	[ "$(grep -oE '^(Job 7[12]: 1000 processes|=== )' "$work/said" | head -n 3)" = "Job 72: 1000 processes
Job 71: 1000 processes
=== " ]
	sed -n '/^Job 72/,/^Job 71/p' "$work/said" > "$work/job72"
	sed -n '/^Job 71/,/^===/p' "$work/said" > "$work/job71"
	[ "$(grep -n '^Findings' "$work/job72" | cut -d: -f1)" -lt 24 ] # on the first screen
	[ "$(grep -n '^Findings' "$work/job72" | cut -d: -f1)" -lt "$(grep -n '^Worst of 1000' "$work/job72" | cut -d: -f1)" ]
	grep -q 'rank 321 reaches 900.0 MiB more than rank 0' "$work/job72"
	# the worst rank is the first row, and twenty rows are shown
	sed -n '/^Worst of 1000 processes/,/more processes/p' "$work/job72" > "$work/worst"
	[ "$(awk 'NR == 3 {print $1}' "$work/worst")" = 321 ]
	[ "$(tail -n 1 "$work/worst")" = "  980 more processes (--top)" ]
	[ "$(wc -l < "$work/worst")" -eq 23 ]
	# the job without that rank does not speak of it
	[ "$(grep -cE '^ *321 |rank 321' "$work/job71")" -eq 0 ]
	[ "$(awk 'length($0) > 80' "$work/said" | wc -l)" -eq 0 ]
	[ "$(tail -n 1 "$work/said")" = "=== 1980 more files (--top, or name one of them)" ]
}

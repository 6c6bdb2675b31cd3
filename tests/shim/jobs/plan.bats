#!/usr/bin/env bats
# Plans against what really happens: the largest batch is predicted from two small runs, then searched
# for under GPUMEMTRACE_CAPACITY.

load ../helpers

capacity=4GiB
weights=$((300 << 20))

# Words for job_rank: a model whose activations are one block that grows with the batch.
one_block() {
	echo keep "$weights" use "$(($1 * 12345678))"
}

# One whose samples have a block each, of a size that is rounded up by half a page.
block_each() {
	local i words="keep $weights"
	for i in $(seq "$1"); do words+=" keep 11534336"; done
	echo "$words"
}

# run_batch MODEL N: true if the batch goes through under the capacity.
run_batch() {
	# shellcheck disable=SC2046 # the words are arguments
	GPUMEMTRACE_CAPACITY=$capacity GPUMEMTRACE_OUT=$work/$2.gmt LD_PRELOAD=$SHIM \
		"$JOBS/job_rank" $("$1" "$2") 2> /dev/null
}

# largest MODEL: the largest batch that goes through, by bisection.
largest() {
	local low=1 high=2048 middle
	while [ $((high - low)) -gt 1 ]; do
		middle=$(((low + high) / 2))
		if run_batch "$1" "$middle"; then low=$middle; else high=$middle; fi
	done
	echo "$low"
}

# predicts MODEL: the plan of two small runs against the bisection, within 5 %.
predicts() {
	local predicted found
	run_batch "$1" 4
	run_batch "$1" 12
	predicted=$("$REPORT" plan --json --batch 4,12 "$work/4.gmt" "$work/12.gmt" | jq .plan.max_batch)
	found=$(largest "$1")
	echo "$1: predicted $predicted, found $found"
	[ $((predicted * 100)) -le $((found * 105)) ]
	[ $((predicted * 100)) -ge $((found * 95)) ]
}

@test "the largest batch of one block that grows" { predicts one_block; }
@test "the largest batch of a block for each sample" { predicts block_each; }

# printed MODEL: the printed batches go through, and a batch that is 5 % larger does not.
printed() {
	local most
	run_batch "$1" 4
	run_batch "$1" 12
	"$REPORT" plan --json --batch 4,12 "$work/4.gmt" "$work/12.gmt" > "$work/document"
	most=$(jq .plan.max_batch "$work/document")
	run_batch "$1" "$(jq .plan.safe_batch "$work/document")"
	run_batch "$1" "$most"
	! run_batch "$1" $((most * 105 / 100 + 1))
}

@test "the largest batch that is printed runs: one block that grows" { printed one_block; }
@test "the largest batch that is printed runs: a block for each sample" { printed block_each; }

# One whose steps leak 8 MiB each, 60 times.
leaking() {
	local words="keep $weights" i
	for i in $(seq 60); do words+=" keep 8388608 use $(($1 * 12345678))"; done
	echo "$words"
}

@test "a leak is left out of the plan, which says so" {
	run_batch leaking 4
	run_batch leaking 12
	mv "$work/4.gmt" "$work/4l.gmt"
	mv "$work/12.gmt" "$work/12l.gmt"
	run_batch one_block 4
	run_batch one_block 12
	"$REPORT" plan --json --batch 4,12 "$work/4.gmt" "$work/12.gmt" > "$work/whole"
	"$REPORT" plan --json --batch 4,12 "$work/4l.gmt" "$work/12l.gmt" > "$work/document"
	is '[.plan.notes[] | select(test("a leak is left out: .* MiB"))] | length' 1
	# without the leak it is the same program; 480 MiB leaked, of which a step's share remains
	local clean
	clean=$(jq .plan.total_bytes "$work/whole")
	is ".plan.total_bytes - $clean | . >= 0 and . < 68 * 1048576" true
	is '.plan.per_batch_bytes' 12345678
}

@test "the slope and the fixed part of two runs" {
	run_batch one_block 4
	run_batch one_block 12
	"$REPORT" plan --json --batch 12,4 "$work/12.gmt" "$work/4.gmt" > "$work/document"
	is .plan.per_batch_bytes 12345678
	is '.plan.fixed_bytes + .plan.per_batch_bytes * .plan.batch == .plan.total_bytes' true
	is '([.plan.rows[].bytes] | add) == .plan.total_bytes' true
	# the context, the weights, and what the last page of the block is rounded up by
	is ".plan.fixed_bytes - 512 * 1048576 - $weights | . >= 0 and . < 2097152" true
	is .plan.batch 12
	is .plan.capacity_bytes $((4 << 30))
}

@test "accumulation keeps the effective batch" {
	run_batch one_block 4
	run_batch one_block 12
	"$REPORT" plan --json --batch 4,12 --target-batch 1000 "$work/4.gmt" "$work/12.gmt" > "$work/document"
	is '.plan.max_batch * .plan.accumulation >= 1000' true
	is '.plan.max_batch * (.plan.accumulation - 1) < 1000' true
	"$REPORT" plan --json --batch 4,12 "$work/4.gmt" "$work/12.gmt" > "$work/document"
	is .plan.accumulation 1
}

@test "one run, and a run beside an estimate" {
	run_batch one_block 4
	"$REPORT" plan --json --batch 4 "$work/4.gmt" > "$work/document"
	is .plan.per_batch_bytes 12345678
	is .plan.estimate null
	"$REPORT" plan --json --batch 4 --params 75M "$work/4.gmt" > "$work/document"
	# fp32, Adam: 4 + 4 + 8 bytes a parameter
	is '[.plan.estimate.rows[] | select(.what | test("weights|gradients|optimizer")) | .bytes] | add' \
		$((75000000 * 16))
	is .plan.estimate.batch 4
	is '.plan.estimate.capacity_bytes == .plan.capacity_bytes' true
	"$REPORT" plan --batch 4 --params 75M "$work/4.gmt" | grep -q '^  what .* measured *estimated'
}

@test "--search runs the program: the largest batch, as bisection finds it" {
	export TMPDIR=$work/tmp
	mkdir "$TMPDIR"
	cat > "$work/model" <<- END
		#!/bin/sh
		echo a line of the program
		exec "$JOBS/job_rank" keep $weights use \$((\$1 * 12345678))
	END
	chmod +x "$work/model"
	"$REPORT" plan --search --capacity $capacity --json -- "$work/model" {} > "$work/document" 2> "$work/error"
	is .plan_search.largest_batch "$(largest one_block)"
	is '[.plan_search.runs[] | select(.outcome == "failed")]' '[]'
	is '[.plan_search.runs[] | select((.outcome == "fits") != (.batch <= '"$(jq .plan_search.largest_batch "$work/document")"'))]' '[]'
	grep -q 'a line of the program' "$work/error"
	"$REPORT" plan --search --capacity $capacity --batch 64 -- "$work/model" {} 2> /dev/null | \
		grep -q "^Largest batch: $(jq .plan_search.largest_batch "$work/document") in 4.00 GiB"
	run "$REPORT" plan --search --capacity $capacity -- /bin/sh -c 'exit 7' {}
	[ "$status" -eq 3 ]
	[[ "$output" == *'ended with status 7 at batch 1'* ]]
	[ -z "$(ls "$TMPDIR")" ]
}

@test "bad input: a sentence and the exit status" {
	run_batch one_block 4
	check() {
		local wanted=$1 sentence=$2
		shift 2
		run "$REPORT" plan "$@"
		[ "$status" -eq "$wanted" ]
		[[ "$output" == *"$sentence"* ]] || { echo "$output"; return 1; }
	}
	check 2 'needs a run or a model'
	check 2 'needs a program with {}' --search -- true
	check 2 'needs a limit' --search -- true {}
	check 2 'all runs have the batch 4' --batch 4 --batch 4 "$work/4.gmt" "$work/4.gmt"
	check 2 '3 batches and 1 files' --batch 1,2,3 "$work/4.gmt"
	check 2 'should be a batch' --batch 0 "$work/4.gmt"
	check 2 'a number of parameters' --params seven
	check 2 'give their number by --world' --params 7B --zero 3
	check 2 'give one' --params 7B --gpu h100 --capacity 10GiB
	check 3 'cannot be opened' --batch 1 "$work/nowhere.gmt"
}

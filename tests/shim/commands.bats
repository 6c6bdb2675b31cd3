#!/usr/bin/env bats
# Every command and every format on every sort of real file: each answers, with a status of its own. Run
# with a sanitized tool and under valgrind by tests/sanitizers.sh, this is what looks at all their memory.

load helpers

# answers COMMAND ARG...: something is said or written, and the exit status is neither a refusal nor a crash.
answers() {
	local status=0
	rm -rf "$work/written"
	"$REPORT" "$@" > "$work/answer" 2> "$work/error" < /dev/null || status=$?
	case $status in
	0 | 1 | 4 | 5) [ -s "$work/answer" ] || [ -s "$work/written" ] && return 0 ;;
	esac
	echo "$* ended with $status: $(tail -n 30 "$work/error")"
	return 1
}

# every_command FILE...: a file or a job of several.
every_command() {
	local command format
	for command in summary leaks sites blocks fragmentation oom timeline; do
		answers $command "$@"
		answers $command --json --full "$@"
	done
	for command in "leaks --all --full --color always" "sites --sort churn --level driver" \
		"sites --sort total --kind device --top 3" "sites --at peak" \
		"timeline --device 0 --no-symbols" "blocks --min-bytes 1KiB --top 3" "blocks --address 0x7f0000001000" \
		"leaks --min-bytes 1MiB" "sites --min-bytes 1MiB"; do
		answers $command "$@"
	done
	answers check --leaks grow --per-mark --max-peak 1MiB --max-fragmentation 1% --max-retries 0 --no-errors \
		--junit "$work/junit.xml" --sarif "$work/sarif.json" "$@"
	answers top --once "$@"
	for format in json jsonl sqlite openmetrics prometheus perfetto pprof torch-snapshot; do
		answers export --format $format -o "$work/written" "$@"
	done
	if [ -n "$HTML" ]; then
		answers html -o "$work/written" "$@"
	fi
}

# one_file FILE OTHER: also what takes one file, and what takes two.
one_file() {
	local format
	every_command "$1"
	for format in $("$REPORT" export --help | sed -n '/^Formats:/,/^Exit/s/^  \([a-z-]*\) .*/\1/p'); do
		# that takes a complete history
		[ $format != zst ] || [ -e "$1.events" ] || continue
		answers export --format $format -o "$work/written" "$1"
	done
	answers check --leaks exit --baseline "$2" --json --allow-oom --allow-unmeasured "$1"
	answers check --leaks off --baseline "$2" --max-peak-growth 5% --max-growth 1MiB --junit "$work/junit.xml" \
		--sarif "$work/sarif.json" "$1"
	answers diff "$1" "$2"
	answers diff --json "$2" "$1"
	answers plan --batch 8 "$1"
	answers plan --batch 8 --json --gpu h100 "$1"
}

# Without npm a build has no page, and html says so.
setup_file() {
	export HTML=yes
	! "$REPORT" html -o /dev/null "$BATS_TEST_DIRNAME/../golden/torch-2.11/torch-2.11-native.pickle" 2>&1 |
		grep -q 'html:' || HTML=
}

@test "a program of all families, with a complete history" {
	local command
	GPUMEMTRACE_EVENTS=all traced "$PROGRAMS/driver_O2"
	GPUMEMTRACE_OUT=$work/other.gmt traced "$PROGRAMS/runtime13_O2"
	one_file "$work/out.gmt" "$work/other.gmt"
	for command in summary leaks sites timeline "html -o $work/written"; do
		[[ $command != html* || -n $HTML ]] || continue
		answers $command --at 1ms "$work/out.gmt"
	done
	"$REPORT" export --format zst -o "$work/packed.zst" "$work/out.gmt"
	answers summary --at 1ms "$work/packed.zst"
	every_command "$work/out.gmt" "$work/other.gmt"
}

@test "PyTorch out of memory, with marks" {
	GPUSIM_MEMORY=2GiB traced "$PROGRAMS/torch/replay" "$BATS_TEST_DIRNAME/torch/traces/fragmented.trace" 0 "$work"
	GPUMEMTRACE_OUT=$work/other.gmt traced "$PROGRAMS/torch/exhaust" once
	one_file "$work/out.gmt" "$work/other.gmt"
}

@test "killed while four threads allocate" {
	killed
	GPUMEMTRACE_OUT=$work/other.gmt traced "$PROGRAMS/runtime13_O2"
	one_file "$work/out.gmt" "$work/other.gmt"
}

@test "PyTorch's own snapshots" {
	local snapshots=$BATS_TEST_DIRNAME/../golden/torch-2.11
	one_file "$snapshots/torch-2.11-native.pickle" "$snapshots/torch-2.11-streams.pickle"
}

@test "a job of four ranks, as a directory" {
	local rank
	mkdir "$work/job"
	for rank in 0 1 2 3; do
		RANK=$rank LOCAL_RANK=$rank WORLD_SIZE=4 GPUSIM_DEVICES=4 GPUMEMTRACE_OUT=$work/job/$rank.gmt \
			traced "$PROGRAMS/jobs/job_rank" use $((100 + rank * 1000))
	done
	every_command "$work/job"
	answers summary "$work"/job/*.gmt
}

@test "run: the program's own status, the summary, the gates" {
	answers run -o "$work/run.gmt" -- "$PROGRAMS/runtime13_O2"
	answers run -o "$work/run.gmt" --check "--leaks exit --no-errors" -- "$PROGRAMS/runtime13_O2"
}

@test "html FILE chooses the name, and replaces nothing but a page" {
	[ -n "$HTML" ] || skip "this build has no page"
	cd "$work"
	traced "$PROGRAMS/runtime13_O2"
	mkdir job
	cp out.gmt job/rank0.gmt
	cp out.gmt job/rank1.gmt
	[ "$("$REPORT" html out.gmt)" = out.html ]
	[ "$("$REPORT" html out.gmt)" = out.html ]
	[ "$("$REPORT" html job/)" = job.html ]
	[ -z "$("$REPORT" html -q ./job/rank0.gmt)" ]
	[ -s rank0.html ]
	echo mine > rank1.html
	answer=$("$REPORT" html job/rank1.gmt 2>&1) && return 1
	[[ $answer == *"rank1.html exists and is no page of gpumem-report"* ]]
	[ "$(cat rank1.html)" = mine ]
}

@test "no binary format is written to a terminal" {
	local format
	traced "$PROGRAMS/runtime13_O2"
	for format in pprof torch-snapshot; do
		script -qec "'$REPORT' export --format $format '$work/out.gmt'" /dev/null > "$work/said" && return 1
		grep -q "$format is binary" "$work/said"
		"$REPORT" export --format $format "$work/out.gmt" > "$work/written"
	done
	script -qec "'$REPORT' export --format csv '$work/out.gmt'" /dev/null | grep -q '^id,'
}

@test "options have long names, and the names of before" {
	traced "$PROGRAMS/runtime13_O2"
	"$REPORT" check --leaks off --fail-on-oom --fail-on-errors --quiet "$work/out.gmt" > "$work/long" || [ $? -eq 4 ]
	"$REPORT" check --leaks off --no-oom --no-errors -q "$work/out.gmt" > "$work/short" || [ $? -eq 4 ]
	[ -s "$work/long" ] && cmp "$work/long" "$work/short"
	"$REPORT" export --format csv --output "$work/sites.csv" "$work/out.gmt"
	[ -s "$work/sites.csv" ]
}

@test "plan --search says at once that a program takes no device memory, or does not use the batch" {
	run "$REPORT" plan --search --capacity 1GiB --json -- true {}
	[ "$status" -eq 3 ]
	[[ $output == *"took no device memory at batch 1 "* ]]
	[ "$("$REPORT" plan --search --capacity 1GiB --json -- true {} 2> /dev/null | jq -c '.plan_search | [.largest_batch, .runs[].outcome]')" = \
		'[null,"no-memory"]' ]
	run "$REPORT" plan --search --capacity 1GiB -- sh -c 'exec python3 "$0" 2' "$BATS_TEST_DIRNAME/../../examples/train.py" {}
	[ "$status" -eq 3 ]
	[[ $output == *"at batch 1 and at batch 1024: the program does not use the batch"* ]]
}

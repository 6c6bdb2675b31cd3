#!/usr/bin/env bats
# Small inputs that stand for much: the report ends soon, and in little memory.

load ../helpers

# bounded COMMAND...: in a quarter of a minute of processor time and 2 GiB of addresses.
bounded() {
	(ulimit -t 15 -v $((2 << 20)); exec "$@")
}

@test "a mangled name of 300 bytes that stands for gigabytes" {
	traced "$HOSTILE/names" "$HOSTILE/long_plugin.so"
	for view in summary leaks "check --leaks exit" "sites --full" "export --format collapsed" "html -o $work/page"; do
		bounded "$TOOL" $view "$work/out.gmt" > "$work/texts" || [ $? -eq 1 ]
	done
	bounded "$TOOL" summary --json "$work/out.gmt" > "$work/document"
	# a name that is not read stays as it is, and others are read
	is '[.sites[].stack[0].function | select(startswith("_Z1f1AI1aS0_ES_I"))] | unique | length' 1
}

@test "an archive that says it is a thousand times as large" {
	GPUMEMTRACE_EVENTS=all traced "$HOSTILE/files" copy
	"$REPORT" export --format zst -o "$work/packed" "$work/out.gmt"
	"$REPORT" summary --json "$work/packed" > "$work/document"
	is '.totals[0].current_bytes' $((11 << 20))
	for at in 32 48; do # file_bytes and journal_bytes of the archive's head
		python3 "$BATS_TEST_DIRNAME/swell.py" "$work/packed" "$work/swollen" $at
		run bounded "$TOOL" summary "$work/swollen"
		[ "$status" -eq 3 ]
		[[ $output == *"a thousand times its size"* ]]
	done
}

@test "suppressions and rules without an end" {
	traced "$HOSTILE/files" copy
	run bounded "$TOOL" check --leaks exit --suppressions /dev/zero "$work/out.gmt"
	[ "$status" -eq 2 ] || [ "$status" -eq 3 ]
	[[ $output == *"more than 10000 lines"* ]]
	run bounded "$TOOL" summary --rules /dev/zero "$work/out.gmt"
	[ "$status" -lt 4 ]
}

@test "a pointer to a device, a pipe or itself: it is not opened" {
	mkfifo "$work/pipe"
	for target in /dev/zero "$work/pipe" "$work" "$work/pointer.gmt"; do
		printf 'gpumemtrace-pointer 1\n%s\nmachine 1\n' "$target" > "$work/pointer.gmt"
		run timeout 200 "$REPORT" summary "$work/pointer.gmt"
		[ "$status" -eq 3 ]
		run timeout 200 "$REPORT" summary "$work"
		[ "$status" -eq 3 ]
	done
}

@test "a plan whose measured line does not fit into 64 bits" {
	export GPUSIM_MEMORY=16TiB
	GPUMEMTRACE_OUT=$work/small.gmt traced "$HOSTILE/wide" 1
	GPUMEMTRACE_OUT=$work/large.gmt traced "$HOSTILE/wide" 6000000
	# 5.72 TiB more for one more of the batch: 10,000,000 of them below zero
	COLUMNS=200 "$REPORT" plan --batch 10000000,10000001 "$work/small.gmt" "$work/large.gmt" > "$work/texts"
	grep -q 'measured in 2 runs: -54.57 EiB, and 5.72 TiB a unit of batch' "$work/texts"
	"$REPORT" plan --json --batch 10000000,10000001 "$work/small.gmt" "$work/large.gmt" | jq . > "$work/document"
}

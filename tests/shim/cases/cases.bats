#!/usr/bin/env bats
# The S cases of cases.md under `check`, each with the exit code that it must have, and what the report
# must say of it. Cases 5, 9 to 11 and 13 to 17 are tests/shim/families, 33 is tests/shim/torch.

load ../helpers

# check CODE OPTION...: the gates' exit code on the last traced program; the text goes to $work/text.
check() {
	local wanted=$1 status=0
	shift
	"$REPORT" check --color never "$@" "$work/out.gmt" > "$work/text" || status=$?
	[ "$status" -eq "$wanted" ] || { echo "exit code $status, not $wanted"; cat "$work/text"; return 1; }
	report
}

# a_case NUMBER [STATUS]: runs it; it must end with that status.
a_case() {
	local status=0
	traced "$PROGRAMS/cases" "$1" 2> "$work/error" || status=$?
	[ "$status" -eq "${2:-0}" ] || { echo "the case ended with $status"; return 1; }
}

@test "1: a destructor that allocates, a move that loses: two growing sites" {
	[ -x "$PROGRAMS/destructor" ] || skip "no C++ compiler"
	traced "$PROGRAMS/destructor"
	check 1
	check 1 --leaks grow --min-bytes 0
	is '[.sites[] | select(.verdict == "grow")] | length' 2
	is '[.sites[] | select(.verdict == "grow") | .live_bytes] | sort' "[122880,1966080]"
	grep -q '~Buffer' "$work/text"
}

@test "2: 64 MiB per call from one stack" {
	a_case 2
	check 1 --leaks grow
	is '[.sites[] | select(.verdict == "grow") | [.live_bytes, .live_count]]' "[[$((20 * 64 << 20)),20]]"
	grep -q never_released "$work/text"
	# the working memory of the last step
	is '[.leaks.teardown_bytes, .leaks.teardown_count]' '[1048576,1]'
	is '[.sites[] | select(.work_bytes > .live_bytes) | [.work_bytes, .work_count, .live_bytes]]' '[[1048576,1,0]]'
	"$REPORT" summary "$work/out.gmt" | grep -q "1.00 MiB in 1 allocation was freed after the program's last work"
}

@test "3: registered again and again: grows, and no byte of the device" {
	a_case 3
	check 0
	check 1 --leaks grow --min-bytes 0
	is '[.sites[] | select(.live_count > 0) | [.kind, .verdict, .live_count]]' '[["registered","grow",16]]'
	is '[.usage[] | select(.kind == "registered") | [.allocations, .failures]]' '[[16,1]]'
	is '.leaks.exit_bytes' 0
	is '.totals[0].current_bytes' 0
}

@test "4: pinned arrays without a finaliser, with the Python line" {
	GPUSIM_MEMORY=8GiB traced python3 "$SOURCE/tests/shim/cases/pinned_arrays.py"
	check 1
	is '[.findings[] | select(.id == "leak.pinned") | .bytes]' '[2000000000]'
	is '[.sites[] | select(.kind == "pinned") | [.live_count, .device]]' '[[10,null]]'
	grep -q 'pinned_arrays.py:[0-9]*' "$work/text"
}

@test "6: pinned memory that CUDA never sees freed" {
	a_case 6
	check 1
	is '[.findings[] | select(.id == "leak.pinned") | .bytes]' "[$((16 << 20))]"
	is '[.usage[] | select(.kind == "pinned") | .frees]' '[0]'
}

@test "7: zero bytes and NULL are nothing" {
	a_case 7
	check 0 --no-errors --leaks exit
	is '.leaks.exit_count' 0
	is '.errors' '[]'
}

@test "8: a double free, with both stacks" {
	a_case 8a
	check 0
	check 5 --no-errors
	is '[.errors[].type]' '["double-free"]'
	is '.errors[0].stack[0].function' '"second_free"'
	is '.errors[0].first_free_stack | length > 0' true
	grep -q second_free "$work/text"
}

@test "8: a double free that destroys somebody else's block: the victim is named" {
	a_case 8b
	check 5 --no-errors
	is '[.errors[] | .type]' '["double-free"]'
	is '[.errors[0].first_free_stack[].function] | index("second_free") != null' true
	grep -q victim "$work/text"
}

@test "18: a pool whose every request is a little larger: one site, strictly rising" {
	a_case 18
	check 1 --leaks grow
	is '[.sites[] | select(.verdict == "grow") | .live_count]' '[256]'
}

@test "19: cached memory in the way: an OOM without release, one retry with it" {
	a_case 19a
	check 4
	is '[.retries.attempts, .retries.recovered]' '[0,0]'
	is '.ooms | length' 1
	rm "$work"/out.gmt*
	a_case 19b
	check 0
	check 5 --max-retries 0
	is '[.retries.attempts, .retries.recovered, .retries.exhausted]' '[1,1,0]'
	is '.ooms' '[]'
}

@test "20: managed memory has its own kind" {
	a_case 20
	check 1
	is '[.sites[] | select(.live_bytes > 0) | [.kind, .live_count]]' '[["managed",10]]'
}

@test "32: a forked worker writes no second report" {
	a_case 32 137
	[ "$(find "$work" -name '*.gmt*' | wc -l)" -eq 1 ]
	check 3
	grep -q 'leaks .*not measured: the process was killed' "$work/text"
	is '.process.end' '"killed"'
	is '.totals[0].current_bytes' 1048576
}

@test "36: the caller's RPATH, dlsym's RTLD_NEXT and programs without CUDA are left alone" {
	LD_LIBRARY_PATH= traced "$PROGRAMS/rpath"
	[ "$(cat "$work/said")" = "found by its own RPATH; RTLD_NEXT is another function" ]
	[ "$(find "$work" -name '*.gmt*' | wc -l)" -eq 0 ]
}

@test "37: a swallowed OOM: the status is the program's, the gate tells" {
	a_case 37
	check 4
	check 0 --allow-oom
	is '.ooms[0].requested_bytes' $((1 << 45))
	rm "$work"/out.gmt*
	"$REPORT" run -q "$PROGRAMS/cases" 37 > "$work/said"
	run "$REPORT" run -q --check "" -- "$PROGRAMS/cases" 37
	[ "$status" -eq 4 ]
}

@test "38: killed: the file tells everything up to the last call" {
	a_case 38 137
	check 3 --leaks exit
	check 1 --leaks grow
	is '[.process.end, .totals[0].current_count]' '["killed",12]'
	is '.leaks.exit_bytes' null
}

@test "the clean program is clean, the leaking one leaks, two hundred times" {
	for i in $(seq 100); do
		for how in clean leaking; do
			rm -f "$work/out.gmt"
			traced "$PROGRAMS/cases" $how
			"$REPORT" check --no-symbols --leaks grow -q "$work/out.gmt" > /dev/null && status=0 || status=$?
			[ "$how$status" = clean0 ] || [ "$how$status" = leaking1 ] || { echo "run $i: $how $status"; return 1; }
		done
	done
}

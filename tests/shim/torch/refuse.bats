#!/usr/bin/env bats
# What-if capacity and fault injection: CUDA's own error state, out-pointers and figures.
load ../helpers

# answers SETTING: which of twenty cudaMalloc were refused.
answers() {
	GPUMEMTRACE_FAIL=$1 traced "$PROGRAMS/exhaust" twenty
	jq -r .answers "$work/said"
}

# said KEY VALUE: the program itself says so.
said() {
	local found
	found=$(jq -r ".$1" "$work/said")
	[ "$found" = "$2" ] || { echo "$1 is $found, not $2"; return 1; }
}

@test "the Nth call, from the Nth on, a share by seed" {
	[ "$(answers 3)" = ..x................. ]
	[ "$(answers 18+)" = .................xxx ]
	[ "$(answers p=0,seed=7)" = .................... ]
	[ "$(answers p=1,seed=7)" = xxxxxxxxxxxxxxxxxxxx ]
	first=$(answers p=0.3,seed=7)
	[ "$first" = "$(answers p=0.3,seed=7)" ]
	[ "$first" != "$(answers p=0.3,seed=8)" ]
	refused=${first//./}
	[ ${#refused} -ge 2 ] && [ ${#refused} -le 12 ]
}

@test "a refused call is an OOM that says it was made" {
	answers 3
	report
	is '[.retries.exhausted, .retries.recovered, .retries.attempts]' '[0,1,1]'
	answers 20
	report
	is '.ooms | [.[] | [.injected, .api]]' '[[true,"cudaMalloc"]]'
	is '[.findings[] | select(.id == "oom") | .advice[] | select(test("GPUMEMTRACE_FAIL"))] |
		length' 1
	# CUDA refused nothing, and there was room
	is '.ooms[0].verdict' '"limit"'
	is '.ooms[0].advice' '["this failure was made by GPUMEMTRACE_FAIL"]'
}

@test "every family can be refused" {
	GPUMEMTRACE_FAIL=1+ traced "$PROGRAMS/exhaust" families
	said failed 8
}

@test "a pretended device is full when it would be, and says so" {
	traced "$PROGRAMS/exhaust" fill
	said blocks 7
	GPUMEMTRACE_CAPACITY=4GiB traced "$PROGRAMS/exhaust" fill
	said blocks 3
	said total $((4 << 30))
	said free_before $(((4 << 30) - (512 << 20)))
	said free $(((1 << 30) - (512 << 20)))
	report
	is '.devices[0] | [.total_bytes, .capacity_bytes]' "[$((8 << 30)),$((4 << 30))]"
	is '.ooms[0].verdict' '"exhausted"'
	is '.ooms[0] | [.injected, .total_bytes, .free_bytes]' \
		"[true,$((4 << 30)),$(((1 << 30) - (512 << 20)))]"
	same blocks '[.usage[] | select(.kind == "device") | .allocations] | add'
}

@test "more than there is changes nothing" {
	GPUMEMTRACE_CAPACITY=80GiB traced "$PROGRAMS/exhaust" fill
	said blocks 7
	said total $((8 << 30))
}

@test "PyTorch's request is refused, flushes and recovers" {
	GPUMEMTRACE_FAIL=2 traced "$PROGRAMS/replay" "$OWN_TRACES/refused.trace" 0 "$work"
	report
	is '.torch[0] | [.alloc_retries, .ooms]' '[1,0]'
	is '.retries | [.attempts, .recovered, .exhausted]' '[1,1,0]'
}

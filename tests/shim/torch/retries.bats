#!/usr/bin/env bats
# Retry chains by contract.md, section 6, in programs without a framework.
load ../helpers

# chains PROGRAM ATTEMPTS RECOVERED EXHAUSTED
chains() {
	traced "$PROGRAMS/exhaust" "$1"
	report
	is '.retries | [.attempts, .recovered, .exhausted]' "[$2,$3,$4]"
	is '.ooms | length' "$4"
}

@test "one failed call is an OOM; swallowed, the exit status is the program's" {
	chains once 0 0 1
	is '.ooms[0] | [.verdict, .api, .requested_bytes, .attempts]' \
		"[\"exhausted\",\"cudaMalloc\",$((4 << 30)),1]"
	is '.ooms[0] | [.free_bytes, .total_bytes, .tracked_bytes, .others_bytes]' \
		"[$(((3 << 30) - (512 << 20))),$((8 << 30)),$((5 << 30)),0]"
	is '.ooms[0].top_sites | [.[] | [.bytes, .count]]' "[[$((5 << 30)),1]]"
}

@test "fail, free, success is one retry and no OOM (cupy#1256, llama.cpp#22107)" {
	chains recovered 1 1 0
	is '.retries.flushed_bytes' $((2 << 30))
	is '.retries.sites | length' 1
	chains pool 1 1 0
	is '.retries.flushed_bytes' $((4780 << 20)) # 100 to 139 MiB
}

@test "every repeated call is an attempt" {
	chains repeated 3 1 0
	chains given-up 2 0 1
	is '.ooms[0].attempts' 3
}

@test "another size is another request" {
	chains different 0 0 4
}

@test "chains are a thread's own" {
	chains threads 1 1 0
	is '.retries.flushed_bytes' $((5 << 30))
}

@test "a chain that is open when the process is killed counts" {
	traced "$PROGRAMS/exhaust" killed || true
	report
	is '[.process.end, .retries.attempts, .retries.exhausted, (.ooms | length)]' '["killed",0,1,1]'
}

@test "a call refused for another reason is no OOM" {
	chains mistaken 0 0 0
	is '[.usage[] | select(.kind == "managed") | .failures]' '[1]'
}

@test "max_split_size: what PyTorch does not count as a retry is none" {
	GPUSIM_MEMORY=2GiB PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:512 \
		traced "$PROGRAMS/replay" "$OWN_TRACES/shortcut.trace" 0 "$work"
	report
	is '[.torch[0].alloc_retries, .retries.attempts, .retries.recovered, (.ooms | length)]' '[0,0,0,0]'
	# Without the setting the same calls are one.
	GPUSIM_MEMORY=2GiB traced "$PROGRAMS/replay" "$OWN_TRACES/shortcut.trace" 0 "$work"
	report
	is '[.torch[0].alloc_retries, .retries.attempts, .retries.recovered, (.ooms | length)]' '[1,1,1,0]'
}

#!/usr/bin/env bats
# Why a request failed: each verdict of contract.md, from figures of the moment of the failure.
load ../helpers

verdict() {
	report
	is '[.ooms[].verdict]' "[\"$1\"]"
}

@test "exhausted, with the largest holder named" {
	traced "$PROGRAMS/exhaust" once
	verdict exhausted
	is '[.findings[] | select(.id == "oom")] | length' 1
}

@test "host: pinned memory has its own limit" {
	GPUSIM_PINNED=64MiB traced "$PROGRAMS/exhaust" host
	verdict host
	is '.ooms[0] | [.device, .api, .free_bytes]' '[null,"cudaHostAlloc",null]'
}

@test "other-processes: it would fit without them" {
	GPUSIM_OTHERS=4711:2GiB,4712:512MiB traced "$PROGRAMS/exhaust" once
	verdict exhausted # 5 GiB could be had, 4 more could not, with or without the others
	GPUSIM_MEMORY=10GiB GPUSIM_OTHERS=4711:2GiB,4712:512MiB traced "$PROGRAMS/exhaust" once
	verdict other-processes
	is '.ooms[0].others_bytes' $(((2 << 30) + (512 << 20)))
	"$REPORT" oom "$work/out.gmt" > "$work/text"
	grep -q 4711 "$work/text"
}

@test "other processes by pid; one that is no more and yet holds memory is told (a zombie's)" {
	# The largest pid that Linux gives is 4194304; this shell lives.
	GPUSIM_MEMORY=10GiB GPUSIM_OTHERS=$$:2GiB,4194304:512MiB traced "$PROGRAMS/exhaust" once
	report
	is '[.ooms[0].processes[] | [.pid, .bytes, .gone]]' \
		"[[$$,$((2 << 30)),false],[4194304,$((512 << 20)),true]]"
}

@test "pending-frees: freed on streams of other threads, in no single piece (rmm#1245)" {
	traced "$PROGRAMS/exhaust" pending
	verdict pending-frees
	is '.ooms[0].api' '"cudaMallocAsync_ptsz"'
}

@test "fragmented: PyTorch's holes would hold it together" {
	GPUSIM_MEMORY=2GiB traced "$PROGRAMS/replay" "$OWN_TRACES/fragmented.trace" 0 "$work"
	verdict fragmented
	is '.ooms[0].requested_bytes' $((512 << 20))
	is '[.findings[] | select(.id == "oom") | .advice[] | select(test("expandable_segments"))] |
		length' 1
}

@test "fragmented with the segments expandable already: other advice" {
	GPUSIM_MEMORY=2GiB PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True \
		traced "$PROGRAMS/replay" "$OWN_TRACES/fragmented.trace" 0 "$work"
	verdict fragmented
	is '[.findings[] | select(.id == "oom") | .advice[] |
		select(test("PYTORCH_CUDA_ALLOC_CONF="))] | length' 0
}

@test "limit: reported without any failed call" {
	traced "$PROGRAMS/replay" "$OWN_TRACES/limit.trace" 0 "$work"
	verdict limit
	is '[.retries.attempts, .retries.exhausted, .torch[0].alloc_retries, .torch[0].ooms]' '[1,1,1,1]'
}

@test "the first and the latest are kept, all are counted" {
	{
		printf 'S 1 20971520\nA 2 1 0 4194304 0\n'
		for i in $(seq 100); do
			printf 'O %d\n' $(((1 << 40) + 512 * i))
		done
	} > "$work/many.trace"
	traced "$PROGRAMS/replay" "$work/many.trace" 0 "$work"
	report
	is '[(.ooms | length), .retries.ooms_not_kept, .retries.exhausted, .torch[0].ooms]' \
		'[64,36,100,100]'
	is '[.ooms[].requested_bytes | (. - 1099511627776) / 512] ==
		[range(1; 33), range(69; 101)]' true
	is '[.ooms[] | select(.top_sites[0].bytes == 4194304)] | length' 64
	run "$REPORT" check "$work/out.gmt"
	[ "$status" -eq 4 ]
	[[ $output == *"100, at most 0 (out-of-memory events)"* ]]
	run "$REPORT" oom "$work/out.gmt"
	[[ $output == *"100 out-of-memory events"*"36 between them only counted"* ]]
}

@test "an allocation on the same thread does not serve PyTorch's request" {
	# A library's call fails inside: its chain is its own, PyTorch's blocks do not recover it.
	GPUSIM_MEMORY=2GiB traced "$PROGRAMS/replay" "$OWN_TRACES/recovered.trace" 0 "$work"
	report
	is '.retries | [.attempts, .recovered, .exhausted]' '[1,1,0]'
	is '.ooms' '[]'
	is '.torch[0] | [.alloc_retries, .ooms]' '[1,0]'
}

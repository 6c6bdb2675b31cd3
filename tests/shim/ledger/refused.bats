#!/usr/bin/env bats
# Calls that fail: for want of memory where nothing is allocated by name, and allocations for other causes.
load ../helpers

# refused CALL FUNCTION N: the Nth call of the driver's FUNCTION answers 2, and that is an event
refused() {
	GPUSIM_FAIL=$2:$3=2 traced "$PROGRAMS/refused" refused "$1"
	report
	same result 2
	is '[.ooms[].api]' "[\"$2\"]"
	is '[.findings[] | select(.id == "oom") | .title | test("refused_call|launch")]' '[true]'
	is '[.retries.exhausted, ([.usage[].failures] | add // 0)]' '[1,0]'
	run "$REPORT" check --leaks off "$work/out.gmt"
	[ "$status" -eq 4 ]
}

@test "a stream" { refused stream cuStreamCreate 1; }
@test "a module" { refused module cuModuleLoadData 2; }
@test "a kernel's first launch" { refused launch cuLaunchKernel 1; }
@test "a launch of a kernel that was launched before" { refused launch cuLaunchKernel 5; }
@test "an instantiation" { refused graph cuGraphInstantiateWithFlags 1; }
@test "a graph's launch" { refused graph cuGraphLaunch 1; }
@test "a mapping" { refused map cuMemMap 1; }
@test "a context" { refused context cuCtxCreate_v2 1; }
@test "a limit" { refused limit cuCtxSetLimit 1; }

# failed CAUSE CODE NAME: one allocation fails, which is no event for want of memory, and is named
failed() {
	traced "$PROGRAMS/refused" failed "$1"
	[ "$1" != fork ] || mv "$work"/out.gmt.[0-9]* "$work/out.gmt"
	report
	same result "$2"
	is '.ooms' '[]'
	is '[.failures[] | [.error, .error_name, .count]]' "[[$2,\"$3\",1]]"
	is '[.findings[] | select(.id == "alloc.failed") | .title | test("'"$3"'")]' '[true]'
	"$REPORT" summary "$work/out.gmt" > "$work/text"
	! grep 'no failed allocation' "$work/text"
}

@test "inside a capture" {
	failed capture 900 cudaErrorStreamCaptureUnsupported
	grep -q 'Next: cudaMalloc failed with error 900.*workspace' "$work/text"
}
@test "of no bytes" { failed zero 1 CUDA_ERROR_INVALID_VALUE; }
@test "of what is registered" { failed registered 712 cudaErrorHostMemoryAlreadyRegistered; }
@test "in the child of a fork" { failed fork 3 cudaErrorInitializationError; }

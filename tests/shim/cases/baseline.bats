#!/usr/bin/env bats
# Two runs of a program that differ at the peak, in churn and in time, and in nothing that is live at the end.

load ../helpers

# recorded NAME STEPS MIB SECONDS: weights of 8 MiB, and scratch memory in each of the steps.
recorded() {
	cat > "$work/steps.py" <<-'PROGRAM'
		import ctypes
		import sys
		import time

		cuda = ctypes.CDLL("libcudart.so.13")


		def weights():
		    pointer = ctypes.c_void_p()
		    assert cuda.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(8 << 20)) == 0
		    return pointer


		def step(mib):
		    pointer = ctypes.c_void_p()
		    assert cuda.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(mib << 20)) == 0
		    assert cuda.cudaFree(pointer) == 0


		kept = weights()
		for _ in range(int(sys.argv[1])):
		    step(int(sys.argv[2]))
		    time.sleep(float(sys.argv[3]))
	PROGRAM
	GPUMEMTRACE_OUT=$work/$1.gmt traced /usr/bin/python3 "$work/steps.py" "$2" "$3" "$4"
}

@test "diff: bytes at the peak, churn and time of each site" {
	recorded old 3 16 0
	recorded new 6 32 0.03
	"$REPORT" diff --json "$work/old.gmt" "$work/new.gmt" > "$work/document"
	is '[.diff.sites[].change]' '["same","same"]'
	is '.diff.sites[0] | [.old_bytes_at_peak, .new_bytes_at_peak]' '[16777216,33554432]'
	is '.diff.sites[0] | [.old_allocated_bytes, .new_allocated_bytes]' '[50331648,201326592]'
	is '.diff.sites[0] | [.old_allocations, .new_allocations]' '[3,6]'
	is '.diff.sites[0].new_time_s >= 0.15' true
	is '.diff.sites[1] | .old_bytes_at_peak == .new_bytes_at_peak and .new_time_s == 0' true
	"$REPORT" diff "$work/old.gmt" "$work/new.gmt" > "$work/said"
	grep -q '1 site is as before' "$work/said"
	grep -A1 '^ *at the peak ' "$work/said" | grep -Eq '32.00 MiB  16.00 MiB  \+16.00 MiB  step \(steps.py'
	grep -A1 '^ *allocated ' "$work/said" | grep -Eq '192.0 MiB  48.00 MiB  \+144.0 MiB  step'
	grep -A1 '^ *allocations ' "$work/said" | grep -Eq '6 +3 +\+3  step'
	grep -A1 '^ *allocating for ' "$work/said" | grep -Eq '\+.* ms  step'
}

@test "check --max-peak-growth: as a percentage and as a size" {
	recorded old 3 16 0
	recorded new 3 32 0
	local baseline=(--leaks off --baseline "$work/old.gmt" "$work/new.gmt")
	# 40 MiB against 24
	"$REPORT" check --max-peak-growth 67% "${baseline[@]}" > "$work/said"
	grep -Eq 'pass  max-peak-growth +67 %, at most 67 % ' "$work/said"
	grep -q '32.00 MiB  16.00 MiB  +16.00 MiB  step' "$work/said"
	"$REPORT" check --max-peak-growth 16MiB "${baseline[@]}" > "$work/said"
	run "$REPORT" check --max-peak-growth 15.9MiB "${baseline[@]}"
	[ "$status" -eq 5 ]
	run "$REPORT" check --max-peak-growth 66 "${baseline[@]}"
	[ "$status" -eq 5 ]
	[[ $output == *"32.00 MiB at the peak, device, the site that grew most"*"step"* ]]
	"$REPORT" check --max-peak-growth 0 --leaks off --baseline "$work/new.gmt" "$work/old.gmt" > "$work/said"
	run "$REPORT" check --max-peak-growth 17179869184 "${baseline[@]}"
	[ "$status" -eq 2 ]
}

@test "check --max-peak-growth without a baseline: a sentence, and run does not start the program" {
	recorded old 1 1 0
	run "$REPORT" check --max-peak-growth 5% "$work/old.gmt"
	[ "$status" -eq 2 ]
	[[ $output == *"--baseline FILE"* ]]
	run "$REPORT" run -o "$work/new.gmt" --check "--max-peak-growth 5%" -- touch "$work/started"
	[ "$status" -eq 2 ]
	[ ! -e "$work/started" ]
	run "$REPORT" run -q -o "$work/new.gmt" --check "leaks off --max-peak-growth 5% --baseline $work/old.gmt" -- \
		/usr/bin/python3 "$work/steps.py" 1 2 0
	[ "$status" -eq 5 ]
}

@test "check --max-growth: what grew counts, also if the program frees it before it ends" {
	GPUMEMTRACE_OUT=$work/new.gmt traced /usr/bin/python3 -c '
import ctypes
import time

cuda, kept = ctypes.CDLL("libcudart.so.13"), []


def allocate():
    pointer = ctypes.c_void_p()
    assert cuda.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(1 << 20)) == 0
    return pointer


def step():
    kept.append(allocate())


def scratch():
    assert cuda.cudaFree(allocate()) == 0


for _ in range(200):
    step()
    scratch()
    time.sleep(0.002)
for pointer in kept:
    assert cuda.cudaFree(pointer) == 0'
	"$REPORT" check --leaks exit --max-growth 201MiB "$work/new.gmt" > "$work/said"
	run "$REPORT" check --leaks off --max-growth 100MiB --sarif "$work/sarif.json" "$work/new.gmt"
	[ "$status" -eq 5 ]
	[[ $output == *"200.0 MiB live in 200 of 200 allocations"*"step"* ]]
	grep -q '200.0 MiB of device memory live in 200 of 200 allocations' "$work/sarif.json"
	run "$REPORT" check --leaks grow --max-growth 100MiB "$work/new.gmt"
	[ "$status" -eq 1 ]
}

@test "a baseline that used no device: the growth in percent is not measured" {
	recorded new 1 1 0
	GPUMEMTRACE_OUT=$work/old.gmt traced /usr/bin/python3 -c '
import ctypes
cuda, pointer = ctypes.CDLL("libcudart.so.13"), ctypes.c_void_p()
assert cuda.cudaMallocHost(ctypes.byref(pointer), ctypes.c_size_t(4096)) == 0'
	run "$REPORT" check --max-peak-growth 5% --leaks off --baseline "$work/old.gmt" "$work/new.gmt"
	[ "$status" -eq 3 ]
	[[ $output == *"not measured: the baseline used no memory of a device"* ]]
	"$REPORT" check --max-peak-growth 10MiB --leaks off --baseline "$work/old.gmt" "$work/new.gmt" > "$work/said"
}

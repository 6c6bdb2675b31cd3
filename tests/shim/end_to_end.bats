#!/usr/bin/env bats
# Every way to reach the driver, each program's own books against the report's document.

load helpers

device_usage='[.usage[] | select(.device == 0 and .owned)]'

# Every device leak's stack has the function innermost, but for the frames of a static cudart. A loop
# that the compiler unrolled is several call sites, and so several sites.
leaks_in() {
	is '[.sites[] | select(.live_bytes > 0 and .kind == "device") | .stack | map(.function)
	     | map(select(startswith("cuda") | not)) | .[0]] | unique' "[\"$1\"]"
}

check_device_figures() {
	report
	same live '[.totals[] | select(.device == 0)][0].current_bytes'
	same live_count '[.totals[] | select(.device == 0)][0].current_count'
	same peak '[.totals[] | select(.device == 0)][0].peak_bytes'
	same allocations "$device_usage | map(.allocations) | add"
	is .file.complete true
	is .file.clean_exit true
	is .process.end '"exit"'
	is .file.dropped_events 0
	is .errors '[]'
}

check_runtime_program() {
	traced "$PROGRAMS/$1"
	check_device_figures
	same allocated "$device_usage | map(.allocated_bytes) | add"
	same freed "$device_usage | map(.freed_bytes) | add"
	same frees "$device_usage | map(.frees) | add"
	same failures "$device_usage | map(.failures) | add"
	same pinned '.usage[] | select(.kind == "pinned") | .current_bytes'
	is '[.usage[] | select(.kind == "managed")][0].allocations' 1
	is '[.usage[] | select(.kind == "async")][0].allocations' 1
	same leak '[.sites[] | select(.live_bytes > 0 and .kind == "device")] | map(.live_bytes) | add'
	same leak_count '[.sites[] | select(.live_bytes > 0 and .kind == "device")] | map(.live_count) | add'
	leaks_in leak_here
	is '.leaks.exit_bytes' $((3003 + 4096))
	is '.leaks.exit_count' 4
	# the make-up of the peak adds up to the peak
	same peak '[.sites[] | select(.level == "driver" and .device == 0)] | map(.bytes_at_peak) | add'
}

check_driver_program() {
	traced "$PROGRAMS/$1" ${2:-}
	check_device_figures
	same failures "$device_usage | map(.failures) | add"
	same pinned '.usage[] | select(.kind == "pinned") | .current_bytes'
	same leak '[.sites[] | select(.live_bytes > 0 and .kind == "device")] | map(.live_bytes) | add'
	same created '.vmm[0].created_bytes'
	same mapped '.vmm[0].mapped_bytes'
	same reserved '.vmm[0].reserved_va_bytes'
	leaks_in leak_here
}

@test "shared cudart 13, -O0" { check_runtime_program runtime13_O0; }
@test "shared cudart 13, -O2" { check_runtime_program runtime13_O2; }
@test "shared cudart 12, -O0" { check_runtime_program runtime12_O0; }
@test "shared cudart 12, -O2" { check_runtime_program runtime12_O2; }
@test "static cudart, -O0" { check_runtime_program runtime_static_O0; }
@test "static cudart, -O2" { check_runtime_program runtime_static_O2; }
@test "linked libcuda, -O0" { check_driver_program driver_O0; }
@test "linked libcuda, -O2" { check_driver_program driver_O2; }
@test "linked libcuda, unmapped at the end" { check_driver_program driver_O2 unmap; }
@test "cuGetProcAddress by the program, -O0" { check_driver_program getprocaddress_O0; }
@test "cuGetProcAddress by the program, -O2" { check_driver_program getprocaddress_O2; }

@test "a library opened RTLD_LOCAL that links cudart 13" {
	traced "$PROGRAMS/plugins" "$PROGRAMS/plugin13.so" 13
	check_device_figures
	leaks_in plugin_allocate
	is '[.sites[] | select(.live_bytes > 0)][0].library' '"plugin13.so"'
}

@test "cudart 12 and 13 in one process, each caller reaches its own" {
	traced "$PROGRAMS/plugins" "$PROGRAMS/plugin12.so" 12 "$PROGRAMS/plugin13.so" 13
	check_device_figures
	is '[.sites[] | select(.live_bytes > 0)] | map(.library) | sort' '["plugin12.so","plugin13.so"]'
	traced "$PROGRAMS/plugins" "$PROGRAMS/plugin13.so" 13 "$PROGRAMS/plugin12.so" 12
}

@test "stacks off, native, depth 1: same bytes, fewer frames" {
	export GPUMEMTRACE_STACKS=off
	traced "$PROGRAMS/runtime13_O2"
	report
	same live '.totals[0].current_bytes'
	is '[.sites[].stack | length] | max' 0
	rm "$work/out.gmt"
	export GPUMEMTRACE_STACKS=native GPUMEMTRACE_DEPTH=1
	traced "$PROGRAMS/runtime13_O2"
	report
	same live '.totals[0].current_bytes'
	is '[.sites[].stack | length] | max' 1
}

#!/usr/bin/env bats
# The same programs under both backends: the same events, sites and totals. What the programs themselves
# say is held against the preload backend's report in tests/shim.

load helpers

# both PROGRAM ARG...
both() {
	seen preload "$@"
	is preload .backend '"preload"'
	is preload .cupti false
	seen cupti "$@"
	cat "$work/error"
	[ ! -s "$work/error" ]
	is cupti .backend '"cupti"'
	is cupti .cupti true
	is cupti '.events | length > 10' true
	is cupti '.dropped + .passed + .lost_stacks' 0
	alike preload cupti
}

@test "shared cudart 13: equal" { both "$SHIM_PROGRAMS/runtime13_O2"; }
@test "shared cudart 12, -O0: equal" { both "$SHIM_PROGRAMS/runtime12_O0"; }
@test "static cudart: equal" { both "$SHIM_PROGRAMS/runtime_static_O2"; }
@test "linked libcuda: equal" { both "$SHIM_PROGRAMS/driver_O2"; }
@test "cuGetProcAddress by the program: equal" { both "$SHIM_PROGRAMS/getprocaddress_O2"; }
@test "libraries opened RTLD_LOCAL, two cudarts: equal" {
	both "$SHIM_PROGRAMS/plugins" "$SHIM_PROGRAMS/plugin12.so" 12 "$SHIM_PROGRAMS/plugin13.so" 13
}

@test "every family of functions, shared cudart: equal" { both "$PROGRAMS/families_sim13"; }
@test "every family of functions, static cudart: equal" { both "$PROGRAMS/families_sim_static"; }

# families.c: one keeps up to 1 TiB and is trimmed of the 32 MiB that 20 MiB took, then destroyed; one keeps 4 MiB.
@test "pools' configuration and trimming: in the same table, equal" {
	for program in families_sim13 families_sim_static; do
		both "$PROGRAMS/$program" async device pools
		for backend in preload cupti; do
			is $backend '[.pools[] | select(.type == 1) | [.threshold_bytes, .trims, .trimmed_bytes]]' \
				'[[1099511627776,1,33554432],[4194304,0,0]]'
		done
		"$REPORT" summary --json "$work/out.gmt" > "$work/report.json"
		is report '[.pools[] | select(.pool == "explicit") | [.reserved_bytes, .release_threshold_bytes]]' \
			'[[33554432,4194304]]'
		both "$PROGRAMS/$program" device graphs
		for backend in preload cupti; do
			is $backend '[.pools[] | select(.type == 2) | .trims]' '[1]'
		done
	done
}

@test "the program's own frames come first: leak() in families.c" {
	seen cupti "$PROGRAMS/families_sim13" device
	# frames of the shim, libcupti, libcuda and libcudart are cut from every stack's top
	is cupti '[.sites[].stack[0] | select(test("^(libgpumemtrace|libcupti|libcuda|libcudart)"))]' '[]'
	is cupti '[.sites[].stack | length > 1] | all' true
}

@test "a library opened RTLD_DEEPBIND: CUPTI sees what the wrappers cannot" {
	export PLUGINS_DEEPBIND=1
	LD_PRELOAD=$SHIM GPUMEMTRACE_OUT=$work/out.gmt "$SHIM_PROGRAMS/plugins" "$SHIM_PROGRAMS/plugin13.so" 13
	[ ! -e "$work/out.gmt" ]
	seen cupti "$SHIM_PROGRAMS/plugins" "$SHIM_PROGRAMS/plugin13.so" 13
	injected "$SHIM_PROGRAMS/plugins" "$SHIM_PROGRAMS/plugin13.so" 13
	for backend in cupti injected; do
		is $backend '[.usage[] | select(.kind == 1) | {allocations, frees, current_bytes}]' \
			'[{"allocations":10,"frees":9,"current_bytes":100000}]'
	done
}

@test "injected without any preload: the same as preloaded CUPTI" {
	for program in families_sim13 families_sim_static; do
		seen preload "$PROGRAMS/$program"
		injected "$PROGRAMS/$program"
		cat "$work/error"
		is injected .backend '"cupti"'
		alike preload injected
	done
}

@test "preloaded and injected, backend preload: recorded once, by the wrappers" {
	seen preload "$PROGRAMS/families_sim13" device
	mv "$work/preload.json" "$work/alone.json"
	CUDA_INJECTION64_PATH=$SHIM seen preload "$PROGRAMS/families_sim13" device
	is preload .backend '"preload"'
	alike alone preload
}

@test "preloaded and injected, backend cupti: recorded once, by CUPTI" {
	seen preload "$PROGRAMS/families_sim13" device
	CUDA_INJECTION64_PATH=$SHIM seen cupti "$PROGRAMS/families_sim13" device
	is cupti .backend '"cupti"'
	alike preload cupti
}

@test "differences are found: another program is not the same" {
	seen preload "$PROGRAMS/families_sim13" device
	seen cupti "$PROGRAMS/families_sim13" device host
	! alike preload cupti
}

# Modules, streams, first launches of kernels, a limit: what they took by the driver's figures
# (shim/families/streams.c; 4 is a launch, which takes 6 MiB and, after the limit, again; 5 a stream).
@test "what calls take without saying so: equal to the byte" {
	export GPUSIM_STREAM=2MiB GPUSIM_LOCAL=6MiB
	for backend in preload cupti; do
		seen $backend "$SHIM_PROGRAMS/families/family_streams"
		is $backend .backend "\"$backend\""
		is $backend '[.costs[] | select(.cost == 4) | .bytes] | add' 12582912
		is $backend '[.costs[] | select(.cost == 5) | .bytes] | add' 10485760
		jq '[.costs[] | {device, cost, calls, ends, live, bytes, library}]' "$work/$backend.json" \
			> "$work/$backend.costs"
	done
	diff "$work/preload.costs" "$work/cupti.costs"
}

@test "injected: first launches are nobody's, the rest is equal" {
	export GPUSIM_STREAM=2MiB GPUSIM_LOCAL=6MiB
	injected "$SHIM_PROGRAMS/families/family_streams"
	is injected '[.costs[] | select(.cost == 4)]' '[]'
	is injected '[.costs[] | select(.cost == 5) | .bytes] | add' 10485760
}

# loads.c of the equivalence programs: wrappers that know nothing of the shim.
@test "module loads: as another library's wrappers see them, in front of the shim or behind it" {
	for backend in preload cupti; do
		for preloads in "$LOADS:$SHIM" "$SHIM:$LOADS"; do
			rm -f "$work"/*.loads
			SHIM=$preloads LOADS_OUT=$work/$backend.loads seen $backend "$CUPTI_PROGRAMS/modules"
			python3 "$EQUIVALENCE/loads.py" "$work" | tee "$work/found"
			grep -q "same  *wrappers 3 loads, 2 unloads; gpumemtrace, $backend 3 loads, 2 unloads\$" \
				"$work/found"
		done
	done
}

@test "loads.py: a load that only the wrappers saw is a difference" {
	SHIM=$LOADS:$SHIM LOADS_OUT=$work/preload.loads seen preload "$CUPTI_PROGRAMS/modules"
	grep -m 1 '"result": 0' "$work/preload.loads" > "$work/again"
	cat "$work/again" >> "$work/preload.loads"
	run python3 "$EQUIVALENCE/loads.py" "$work"
	[ "$status" -eq 1 ]
	[[ $output == *"DIFFERENT wrappers 4 loads"* ]]
}

@test "stacks off and python: same bytes, no stacks" {
	export GPUMEMTRACE_STACKS=off
	seen preload "$PROGRAMS/families_sim13" device
	seen cupti "$PROGRAMS/families_sim13" device
	is cupti '[.sites[].stack | length] | max' 0
	alike preload cupti
}

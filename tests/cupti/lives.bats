#!/usr/bin/env bats
# Contexts' ends, ends that are never told, forks, the end of the process.

load helpers

@test "a context that ends without a call of the table takes its memory along" {
	seen cupti "$CUPTI_PROGRAMS/lives" context
	is cupti '[.usage[] | select(.kind == 1)] | map(.current_bytes) | add' 3145728
	is cupti '[.implicit[] | {cause, bytes, count}]' '[{"cause":1,"bytes":5242880,"count":1}]'
	is cupti '[.contexts[] | select(.state == 1)] | length' 1
}

@test "contexts that the driver takes down at exit free nothing" {
	seen cupti "$CUPTI_PROGRAMS/lives" leak
	is cupti .end 1
	is cupti '[.usage[] | select(.kind == 1)] | map(.current_bytes) | add' 3145728
	is cupti .implicit '[]'
}

@test "the process ends while threads are inside CUDA: it ends, and the file says so" {
	for i in 1 2 3 4 5; do
		seen cupti "$CUPTI_PROGRAMS/lives" busy
		[ ! -s "$work/error" ]
		is cupti .end 1
		is cupti '[.usage[] | select(.kind == 1) | .current_bytes >= 3145728] | all' true
	done
}

@test "a call whose end is never told is dropped, later ones are recorded" {
	FAKE_CUPTI_LOST_END=2 seen cupti "$CUPTI_PROGRAMS/lives" many
	is cupti '[.usage[] | select(.kind == 1)] | map(.allocations) | add' 9
	is cupti '[.usage[] | select(.kind == 1)] | map(.current_count) | add' 9
	is cupti .passed 0
}

@test "more threads than once fit, one after another: none is lost" {
	seen cupti "$CUPTI_PROGRAMS/lives" threads
	is cupti '[.usage[] | select(.kind == 1)] | map(.allocations) | add' 1500
	is cupti .passed 0
}

@test "a program that clears its environment: CUPTI starts at the first call after cuInit" {
	seen cupti "$CUPTI_PROGRAMS/lives" unset
	is cupti .backend '"cupti"'
	is cupti '[.usage[] | select(.kind == 1)] | map(.current_bytes) | add' 3145728
	is cupti '[.contexts[] | select(.state == 1)] | length' 1
}

@test "a child of a fork that uses CUDA keeps a file of its own" {
	rm -f "$work"/*.gmt
	LD_PRELOAD=$SHIM GPUMEMTRACE_BACKEND=cupti GPUMEMTRACE_OUT=$work/%p.gmt "$CUPTI_PROGRAMS/lives" fork \
		> "$work/said" 2> "$work/error"
	parent=$(jq .parent "$work/said")
	child=$(jq .child "$work/said")
	"$DUMP" "$work/$parent.gmt" > "$work/parent.json"
	"$DUMP" "$work/$child.gmt" > "$work/child.json"
	is parent '[.usage[] | select(.kind == 1)] | map(.current_bytes) | add' 3145728
	is child '[.usage[] | select(.kind == 1)] | map(.current_bytes) | add' 1048576
	is child .backend '"cupti"'
}

@test "a program without CUDA does not meet libcupti" {
	cd "$work"
	LD_PRELOAD=$SHIM GPUMEMTRACE_BACKEND=cupti LD_DEBUG=files /bin/true 2> "$work/error"
	! grep -q libcupti "$work/error"
	[ -z "$(find "$work" -name '*.gmt*')" ]
}

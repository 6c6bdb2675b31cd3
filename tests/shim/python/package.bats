#!/usr/bin/env bats
# The Python package with the tool of the build tree: blocks of code, a notebook's cells, the command.

bats_require_minimum_version 1.5.0
load ../helpers

PYTHON=/usr/bin/python3

prepare() {
	export PYTHONPATH=$SOURCE/python:$SOURCE/tests/shim/python PATH=${REPORT%/*}:$PATH PYTHONDONTWRITEBYTECODE=1
	export XDG_CACHE_HOME=$work/cache IPYTHONDIR=$work/ipython
	export LD_LIBRARY_PATH=$SIM
	cd "$work"
}

# watched BLOCK: that part of watch.py under the shim
watched() {
	prepare
	LD_PRELOAD=$SHIM "$PYTHON" "$SOURCE/tests/shim/python/watch.py" "$1"
}

@test "watch: nested blocks, each with its own peak; the program's peak stays" {
	watched nested
}

@test "watch: the program's reset of its peak takes nothing from a block" {
	watched own_reset
}

@test "watch: nothing, pinned memory, an exception" {
	watched nothing
	watched pinned
	watched error
}

@test "watch: PyTorch's blocks count, not what it reserved" {
	watched torch
}

@test "watch: asleep, woken in a block, stopped and started in one" {
	watched stopped
}

@test "watch: what was not measured says why" {
	watched no_call
	"$PYTHON" "$SOURCE/tests/shim/python/watch.py" absent
	PATH=/usr/bin:/bin LD_PRELOAD=$SHIM "$PYTHON" "$SOURCE/tests/shim/python/watch.py" no_tool
}

@test "a notebook: cells, start and stop" {
	"$PYTHON" -c 'import IPython' 2> /dev/null || skip "no IPython here"
	prepare
	cat > cells <<-'CELLS'
		%load_ext gpumemtrace
		import gpu
		---
		%gpumem
		---
		%%gpumem
		first = gpu.allocate(4 << 20)
		second = gpu.allocate(1 << 20)
		gpu.free(first)
		6 * 7
		---
		%%gpumem build
		def build():
		    return gpu.allocate(2 << 20)
		model = build()
		raise ValueError("as it is")
		---
		%gpumem stop
		---
		%%gpumem
		build()
		---
		%gpumem start
		---
		%%gpumem woken
		third = build()
		---
		%gpumem
		---
		%gpumem begin
	CELLS
	LD_PRELOAD=$SHIM "$PYTHON" "$SOURCE/tests/shim/python/cells.py" cells > said
	cat said
	grep -q '^gpumem: recording; 0 B in use$' said
	grep -qF 'Out[3]: 42' said
	grep -q '^cell 3, device 0: allocated 5.0 MiB in 2 calls, retained 1.0 MiB, peak 5.0 MiB$' said
	grep -qE '^ +In\[3\]:2  second = gpu.allocate\(1 << 20\)$' said
	grep -q '^ValueError: as it is$' said
	grep -q '^build, device 0: allocated 2.0 MiB in 1 call, retained 2.0 MiB, peak 2.0 MiB$' said
	grep -qE '^ +In\[4\]:2  return gpu.allocate\(2 << 20\)$' said
	grep -qE '^ +In\[4\]:3  model = build\(\)$' said
	grep -q '^gpumem: the tracer sleeps; its file keeps what was recorded$' said
	grep -q '^cell 6: not measured: the tracer sleeps' said
	grep -q '^gpumem: recording begins with the next CUDA call$' said
	grep -q '^woken, device 0: allocated 2.0 MiB in 1 call, retained 2.0 MiB, peak 2.0 MiB$' said
	grep -q '^gpumem: recording; 2.0 MiB in use$' said
	grep -q "^gpumem: 'begin' is neither start nor stop" said
	[ "$(awk 'length($0) > 80 && /In\[|gpu.py/' said | wc -l)" -eq 0 ]
}

@test "a notebook without the tracer says how to start it" {
	"$PYTHON" -c 'import IPython' 2> /dev/null || skip "no IPython here"
	prepare
	printf '%%load_ext gpumemtrace\n---\n%%gpumem start\n---\n%%%%gpumem\n1 + 1\n' > cells
	"$PYTHON" "$SOURCE/tests/shim/python/cells.py" cells > said
	grep -q '^gpumem: the tracer is not in this process.*gpumemtrace run -m jupyter lab' said
	grep -qF 'Out[3]: 2' said
	grep -q '^cell 3: not measured: the tracer is not in this process' said
}

@test "the command: the tool's version, its commands, its exit statuses" {
	prepare
	LD_PRELOAD=$SHIM "$PYTHON" -c 'import gpu; gpu.allocate(1 << 20)'
	[ "$("$PYTHON" -m gpumemtrace --version)" = "gpumemtrace $("$REPORT" --version | cut -d' ' -f2)" ]
	[ "$("$PYTHON" -m gpumemtrace report "$work/out.gmt")" = "$("$REPORT" summary "$work/out.gmt")" ]
	[ "$("$PYTHON" -m gpumemtrace leaks --all "$work/out.gmt")" = "$("$REPORT" leaks --all "$work/out.gmt")" ]
	"$PYTHON" -m gpumemtrace top --once "$work/out.gmt" | grep -q 'device 0'
	run "$PYTHON" -m gpumemtrace html --help
	[[ $status -eq 0 && $output == "gpumem-report html"* ]]
	run "$PYTHON" -m gpumemtrace report nothing.gmt
	[ "$status" -eq 3 ]
	run "$PYTHON" -m gpumemtrace leaks --nonsense
	[ "$status" -eq 2 ]
	run "$PYTHON" -m gpumemtrace
	[[ $status -eq 2 && $output == *"--version"* && $output == *"report"* ]]
	PATH=/usr/bin:/bin run "$PYTHON" -m gpumemtrace report "$work/out.gmt"
	[[ $status -eq 2 && $output == *"gpumem-report is neither in PATH nor in"* ]]
}

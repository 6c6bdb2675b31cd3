#!/usr/bin/env bash
# Verdicts on a real GPU: clean loops of frameworks pass `check`, a loop that keeps its graphs fails
# with 1 and names its line; a C++ program of each leaking family fails with 1, kind and bytes as it
# says; NVTX ranges are marks.
#   run.sh BUNDLE OUT
# shellcheck source-path=SCRIPTDIR source=../lib.sh
. "$(dirname "$0")/../lib.sh"

families() {
	local family
	for family in device async pool managed pinned array vmm graph; do
		if ran "$family" 30 "$bundle/leaking" "$family" && document "$family"; then
			checked 1 "$family"
			compare "$here/compare.py" family "$family" "$out/$family.said" "$out/$family.json"
		fi
		ran "$family-clean" 30 "$bundle/leaking" "$family" clean && checked 0 "$family-clean"
	done
}

clean() { # NAME [SETTING=VALUE...] PROGRAM...
	ran "$1" 100 "${@:2}" && checked 0 "$1"
}

torch_leak() {
	local line
	line=$(grep -n 'losses.append(loss +' "$here/torch_loop.py" | cut -d: -f1)
	ran torch-leak 100 "$python" "$here/torch_loop.py" leak || return
	checked 1 torch-leak
	if grep -q "torch_loop.py:$line" "$out/torch-leak.check"; then
		echo "ok torch-leak: check names torch_loop.py:$line"
	else
		echo "FAIL torch-leak: check does not name torch_loop.py:$line"
	fi
	document torch-leak && compare "$here/compare.py" torch "$out/torch-leak.json" "$line"
}

nvtx() {
	ran torch-nvtx 100 GPUMEMTRACE_MARK=step "$python" "$here/torch_nvtx.py" || return
	checked 0 torch-nvtx
	document torch-nvtx && compare "$here/compare.py" marks "$out/torch-nvtx.said" "$out/torch-nvtx.json"
}

piece families families
piece torch-clean clean torch-clean "$python" "$here/torch_loop.py"
piece torch-leak torch_leak
piece torch-nvtx nvtx
piece cupy-clean clean cupy-clean "$python" "$here/cupy_loop.py"
piece jax-growing-clean clean jax-growing-clean XLA_PYTHON_CLIENT_PREALLOCATE=false "$python" "$here/jax_loop.py"
# a share of the device that leaves the others their room
piece jax-clean clean jax-clean XLA_PYTHON_CLIENT_MEM_FRACTION=.1 "$python" "$here/jax_loop.py"
finish leaks

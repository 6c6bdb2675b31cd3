#!/usr/bin/env bash
# PyTorch's figures against ours on a real GPU, to the byte; then what recording costs:
#   run-torch.sh BUNDLE OUT [exact|cost]    BUNDLE: see bundle.sh
# Prints PASS and FAIL lines; status 1 if anything failed. About two minutes, and two for the cost.
set -u
bundle=$(cd "$1" && pwd) out=$(mkdir -p "$2" && cd "$2" && pwd) part=${3:-all}
here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-python3}
status=0

scenario() { # NAME [SETTING=VALUE...]
	local name=$1
	shift
	env "$@" LD_PRELOAD="$bundle/libgpumemtrace.so" GPUMEMTRACE_OUT="$out/$name.gmt" \
		GPUMEMTRACE_QUIET=1 "$python" "$here/torch_scenarios.py" "$name" "$out" || {
		echo "FAIL  $name: the scenario ended with status $?"
		status=1
		return
	}
	"$python" "$here/torch_exact.py" "$out" "$bundle/gpumem-report" "$name" || status=1
}

if [ "$part" != cost ]; then
	scenario pressure
	scenario expandable PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
	scenario graphs
	scenario libraries
	scenario async PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync
	scenario capacity GPUMEMTRACE_CAPACITY=20GiB
	for name in pressure expandable; do
		"$bundle/gpumem-report" oom "$out/$name.gmt" > "$out/$name.oom.txt" 2>&1
		"$bundle/gpumem-report" fragmentation "$out/$name.gmt" > "$out/$name.fragmentation.txt" 2>&1
	done
fi
if [ "$part" != exact ]; then
	"$python" "$here/torch_cost.py" pairs "$bundle/libgpumemtrace.so" "$out" "${PAIRS:-5}" || {
		echo "FAIL  torch_cost.py ended with status $?"
		status=1
	}
fi
exit $status

#!/usr/bin/env bash
# PyTorch's figures against ours on a real GPU, to the byte; then what recording costs:
#   run-torch.sh BUNDLE OUT [exact|cost]    BUNDLE: see bundle.sh
# Prints PASS and FAIL lines; status 1 if anything failed. About two minutes, and two for the cost.
set -u
bundle=$(cd "$1" && pwd) out=$(mkdir -p "$2" && cd "$2" && pwd) part=${3:-all}
here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-python3}
status=0

# The report needs the bundle's libraries, python must not see them.
cat > "$out/report" <<EOF
#!/bin/sh
LD_LIBRARY_PATH=$bundle exec "$bundle/gpumem-report" "\$@"
EOF
chmod +x "$out/report"

scenario() { # NAME [SETTING=VALUE...]
	local name=$1
	shift
	env "$@" LD_PRELOAD="$bundle/libgpumemtrace.so" GPUMEMTRACE_OUT="$out/$name.gmt" \
		GPUMEMTRACE_QUIET=1 "$python" "$here/torch_scenarios.py" "$name" "$out" || {
		echo "FAIL  $name: the scenario ended with status $?"
		status=1
		return
	}
	"$python" "$here/torch_exact.py" "$out" "$out/report" "$name" || status=1
}

if [ "$part" != cost ]; then
	scenario pressure
	scenario expandable PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
	scenario graphs
	scenario libraries
	scenario async PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync
	scenario capacity GPUMEMTRACE_CAPACITY=20GiB
	for name in pressure expandable; do
		"$out/report" oom "$out/$name.gmt" > "$out/$name.oom.txt" 2>&1
		"$out/report" fragmentation "$out/$name.gmt" > "$out/$name.fragmentation.txt" 2>&1
	done
fi
if [ "$part" != exact ]; then
	"$python" "$here/torch_cost.py" pairs "$bundle/libgpumemtrace.so" "$out" "${PAIRS:-5}"
fi
exit $status

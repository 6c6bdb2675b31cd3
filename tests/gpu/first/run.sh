#!/usr/bin/env bash
# The main job on a real GPU: PyTorch, CuPy, JAX and an nvcc program with the static cudart, each
# unmodified under the shim, its own figures beside the report's. Run from anywhere on the GPU machine:
#   run.sh BUNDLE OUT    BUNDLE: the shim, gpumem-report, static_program and the libraries they need
set -u
bundle=$(cd "$1" && pwd) out=$(mkdir -p "$2" && cd "$2" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
status=0
report() { "$bundle/gpumem-report" "$@"; }

traced() {
	local name=$1 kind=$2
	shift 2
	echo "== $name: $*"
	LD_PRELOAD=$bundle/libgpumemtrace.so GPUMEMTRACE_OUT=$out/$name.gmt timeout 200 "$@" \
		> "$out/$name.said" 2> "$out/$name.err"
	echo "exit status $?"
	tail -n 3 "$out/$name.err"
	report summary --json "$out/$name.gmt" > "$out/$name.json"
	cat "$out/$name.said"
	python3 "$here/compare.py" "$kind" "$out/$name.said" "$out/$name.json" || status=1
	report summary "$out/$name.gmt" > "$out/$name.txt" 2>&1
	sed -n 1,60p "$out/$name.txt"
}

date -u +%F
nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader
python3 -c 'import torch, cupy, jax, sys
print("torch", torch.__version__, "cupy", cupy.__version__, "jax", jax.__version__, "python", sys.version.split()[0])'

traced static static "$bundle/static_program"
traced torch torch python3 "$here/train_torch.py"
PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True traced torch-expandable torch python3 "$here/train_torch.py"
traced cupy cupy python3 "$here/cupy_script.py"
XLA_PYTHON_CLIENT_PREALLOCATE=false traced jax-growing jax python3 "$here/jax_script.py"
traced jax jax python3 "$here/jax_script.py"
exit $status

#!/usr/bin/env bash
# Whose lines the peak is made of: PyTorch (a 12-layer transformer with Adam), CuPy and JAX under the
# shim; sites, categories and sums against what each script says of itself.
#   run.sh BUNDLE OUT
# shellcheck source-path=SCRIPTDIR source=../lib.sh
. "$(dirname "$0")/../lib.sh"

stacks() { # KIND SCRIPT [SETTING=VALUE...]
	local kind=$1 script=$2
	shift 2
	ran "$kind" 100 "$@" "$python" "$here/$script" && document "$kind" &&
		compare "$here/compare.py" "$kind" "$out/$kind.said" "$out/$kind.json"
	report sites --at peak --top 12 "$out/$kind.gmt" > "$out/$kind.sites.txt" 2>&1
}

piece torch stacks torch train_torch.py
piece cupy stacks cupy cupy_script.py
piece jax stacks jax jax_script.py XLA_PYTHON_CLIENT_PREALLOCATE=false
finish stacks

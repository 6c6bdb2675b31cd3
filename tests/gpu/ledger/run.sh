#!/usr/bin/env bash
# The ledger on a real GPU at the scale of large programs: what graphs, streams, modules, contexts, local
# memory, events, registered memory, address space, pools, handles and green contexts take, by NVML and by the
# driver's free bytes at each step, without the shim and with it, beside the ledger's rows; and what recording
# costs in a loop of graph launches and in a training step.
#   [PLAIN=1] run.sh BUNDLE OUT [SUITE...]      all of them: about 3 min, and 2 more with PLAIN=1, without the shim first
#   run.sh BUNDLE OUT turns                     what recording costs, in pairs of turns: about 45 s
# OUT gets PROGRAM.said, PROGRAM.plain.said, PROGRAM.json and PROGRAM.txt of each; steps.tsv has all steps, turns.tsv all pairs.
# shellcheck source-path=SCRIPTDIR source=../lib.sh
. "$(dirname "$0")/../lib.sh"
shift 2
steps=$bundle/ledger_steps
if [ ! -x "$steps" ]; then
	cuda=${CUDA_HOME:-/usr/local/cuda}
	steps=$out/ledger_steps
	gcc -O1 -g -fno-optimize-sibling-calls -I "$cuda/include" -o "$steps" "$here/ledger_steps.c" \
		-L "$cuda/lib64/stubs" -lcuda -ldl -lpthread || exit 2
fi
wanted() { [ ${#only[@]} -eq 0 ] || [[ " ${only[*]} " == *" $1 "* ]]; }
only=("$@")

# suite NAME COMMAND...: with the shim
suite() {
	local name=$1
	shift
	wanted "$name" || return
	[ -z "${PLAIN:-}" ] || timeout -k 5 60 "$@" > "$out/$name.plain.said" 2> "$out/$name.plain.err" ||
		echo "FAIL $name: the program ended with $?: $(tail -n 1 "$out/$name.plain.said" "$out/$name.plain.err" | tr '\n' ' ')"
	ran "$name" 90 "$@" && document "$name" && rm -f "$out/$name.gmt"
}

echo "driver $(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2> /dev/null)"
for name in $("$steps"); do
	[ "$name" = graph-loop ] || suite "$name" "$steps" "$name"
done
suite torch-captures "$python" "$here/torch_captures.py" captures
suite torch-handles "$python" "$here/torch_captures.py" handles
wanted turns && judged turns 120 "$python" "$here/turns.py" "$bundle" "$out"
compare "$here/compare.py" "$out"
for said in "$out"/*.said; do
	sed "s/^/$(basename "$said" .said)\t/" "$said"
done > "$out/steps.tsv"

#!/usr/bin/env bash
# What takes device memory without saying so, step by step, on a real GPU:
#   run.sh BUNDLE OUT     BUNDLE: see ../bundle.sh
# Prints step lines (steps.cu, graph_steps.py) and the ledger's rows at each step. About two minutes.
set -u
bundle=$(cd "$1" && pwd) out=$(mkdir -p "$2" && cd "$2" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-python3}
shim=$bundle/libgpumemtrace.so

cat > "$out/report" <<END
#!/bin/sh
LD_LIBRARY_PATH=$bundle exec "$bundle/gpumem-report" "\$@"
END
chmod +x "$out/report"

echo "== steps without the shim"
"$bundle/steps"
echo "== steps under the shim"
LD_PRELOAD=$shim GPUMEMTRACE_QUIET=1 GPUMEMTRACE_OUT=$out/steps.gmt "$bundle/steps" | grep -v '^cost'
"$out/report" summary "$out/steps.gmt"
"$python" "$here/ledger_rows.py" "$out/report" "$out/steps.gmt"
for settings in CUDA_MODULE_LOADING=LAZY CUDA_MODULE_LOADING=EAGER; do
	echo "== PyTorch's graph, $settings, without the shim"
	env $settings "$python" "$here/graph_steps.py" "$out"
done
echo "== PyTorch's graph under the shim"
LD_PRELOAD=$shim GPUMEMTRACE_QUIET=1 GPUMEMTRACE_OUT=$out/graph.gmt "$python" "$here/graph_steps.py" "$out"
"$python" "$here/ledger_rows.py" "$out/report" $(ls -v "$out"/graph_steps.*.gmt) "$out/graph.gmt"
"$out/report" summary "$out/graph.gmt" | tail -n 60

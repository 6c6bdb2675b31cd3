#!/usr/bin/env bash
# Collects what the GPU suite needs into one folder, to be carried to a machine that has neither headers
# nor libunwind:  bundle.sh BUILD FOLDER
# It is the portable folder of packaging/bundle.sh and the suite's programs.
set -eu
build=$1 folder=$2
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$folder"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$here/../../packaging/bundle.sh" "$build" "$work/bundle"
cp -r "$work/bundle/." "$folder"
# the suites look for both in the folder itself
cp "$folder/lib/libgpumemtrace.so" "$folder/"
printf '#!/bin/sh\nexec "$(dirname "$(readlink -f "$0")")/bin/gpumem-report" "$@"\n' > "$folder/gpumem-report"
chmod +x "$folder/gpumem-report"
if command -v nvcc > /dev/null; then
	nvcc -O2 -g -arch=sm_90 -o "$folder/static_program" "$here/first/static_program.cu"
	nvcc -O2 -g -arch=sm_90 -o "$folder/steps" "$here/probes/steps.cu" \
		-L "$(dirname "$(command -v nvcc)")/../lib64/stubs" -lcuda
	nvcc -O1 -g -arch=sm_90 -o "$folder/service" "$here/verdicts/workloads/service.cu" \
		-L "$(dirname "$(command -v nvcc)")/../lib64/stubs" -lcublas -lcufft -lcusolver -lcuda
fi
${CC:-cc} -O2 -Wall -shared -fPIC -o "$folder/switch.so" "$here/cost/switch.c" -ldl
${CC:-cc} -O2 -Wall -fno-optimize-sibling-calls -o "$folder/turns" "$here/cost/turns.c" -ldl -lm -lpthread
if [ -e /usr/local/cuda/include/cuda.h ]; then
	${CC:-cc} -O1 -g -Wall -Wno-missing-prototypes -o "$folder/pool_program" "$here/whatif/pool/pool_program.c" \
		-L /usr/local/cuda/lib64/stubs -lcuda -lm
	${CC:-cc} -O1 -g -fno-optimize-sibling-calls -Wall -I /usr/local/cuda/include -o "$folder/ledger_steps" \
		"$here/ledger/ledger_steps.c" -L /usr/local/cuda/lib64/stubs -lcuda -ldl -lpthread
fi
if [ -e /usr/local/cuda/lib64/libcudart_static.a ]; then
	"$here/build-families.sh" "$folder"
fi
du -sh "$folder"

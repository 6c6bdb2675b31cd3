#!/usr/bin/env bash
# Collects what the GPU suite needs into one folder, to be carried to a machine that has neither headers
# nor libunwind:  bundle.sh BUILD FOLDER
# The C library is the machine's own; everything else comes along.
set -eu
build=$1 folder=$2
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$folder"
cp "$build/src/interpose/libgpumemtrace.so" "$build/tools/gpumem-report/gpumem-report" "$folder/"
libraries() { ldd "$1" | awk '$3 ~ /^\// {print $3}' | grep -vE '/(libc|libm|libdl|libpthread|librt)\.so'; }
for library in $(libraries "$build/tools/gpumem-report/gpumem-report"); do cp -L "$library" "$folder/"; done
unwinder=$(ldconfig -p | awk '/libunwind\.so\.8 .*x86-64/ {print $NF; exit}')
if [ -n "$unwinder" ]; then
	cp -L "$unwinder" "$folder/"
	for library in $(libraries "$unwinder"); do cp -L "$library" "$folder/"; done
fi
if command -v nvcc > /dev/null; then
	nvcc -O2 -g -arch=sm_90 -o "$folder/static_program" "$here/first/static_program.cu"
	nvcc -O2 -g -arch=sm_90 -o "$folder/steps" "$here/probes/steps.cu" \
		-L "$(dirname "$(command -v nvcc)")/../lib64/stubs" -lcuda
fi
if [ -e /usr/local/cuda/lib64/libcudart_static.a ]; then
	"$here/build-families.sh" "$folder"
fi
du -sh "$folder"

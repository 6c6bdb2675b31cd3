#!/usr/bin/env bash
# Builds the family programs against the real toolkit, to be carried to a machine with a GPU:
#   build-families.sh FOLDER [CUDA]
# The runtime is linked statically; the driver is the machine's own.
set -eu
folder=$1 cuda=${2:-/usr/local/cuda}
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$folder"
for source in "$here"/families/*.c; do
	name=$(basename "$source" .c)
	${CC:-cc} -O1 -g -fno-optimize-sibling-calls -Wall -DFAMILY_REAL -I "$cuda/include" \
		-I "$here/families" -I "$here/../../include" -o "$folder/family_$name" "$source" \
		"$cuda/lib64/libcudart_static.a" -L "$cuda/lib64/stubs" -lcuda -ldl -lrt -lpthread
done
cp "$here/families/check.py" "$here/run-families.sh" "$folder/"

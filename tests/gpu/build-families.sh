#!/usr/bin/env bash
# Builds the family programs against the real toolkit, to be carried to a machine with a GPU:
#   build-families.sh FOLDER [CUDA]
# The runtime is linked statically but where the runtime itself answers calls that no driver sees (a
# free at exit or inside a host function): a static one hides those from everybody. The driver is the
# machine's own.
set -eu
folder=$1 cuda=${2:-/usr/local/cuda}
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$folder"
for source in "$here"/families/*.c; do
	name=$(basename "$source" .c)
	case $name in
	device | hostfn | teardown) runtime="-L $cuda/lib64 -l:libcudart.so.13 -Wl,-rpath,\$ORIGIN" ;;
	*) runtime="$cuda/lib64/libcudart_static.a" ;;
	esac
	${CC:-cc} -O1 -g -fno-optimize-sibling-calls -Wall -DFAMILY_REAL -I "$cuda/include" \
		-I "$here/families" -I "$here/../../include" -o "$folder/family_$name" "$source" \
		$runtime -L "$cuda/lib64/stubs" -lcuda -ldl -lrt -lpthread
done
${CXX:-c++} -O1 -g -fno-optimize-sibling-calls -Wall -DFAMILY_REAL -I "$cuda/include" -I "$here/families" \
	-o "$folder/leaking" "$here/leaks/leaking.cpp" "$cuda/lib64/libcudart_static.a" \
	-L "$cuda/lib64/stubs" -lcuda -ldl -lrt -lpthread
${CC:-cc} -O2 -g -fno-optimize-sibling-calls -Wall -DLOAD_REAL -I "$cuda/include" -o "$folder/load" \
	"$here/../bench/load/load.c" "$cuda/lib64/libcudart_static.a" -ldl -lrt -lpthread
cp -L "$cuda/lib64/libcudart.so.13" "$folder/"
cp "$here/families/check.py" "$here/run-families.sh" "$folder/"

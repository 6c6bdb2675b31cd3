#!/bin/bash
# The folder of somebody who reads the documents: the tool and the shim are installed, there are programs
# and what they recorded. prepare.sh SOURCE BUILD FOLDER
set -eu
source=$1 build=$2 folder=$3
tools=$folder/.tools
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$tools"/{bin,lib,python}
report=$build/tools/gpumem-report/gpumem-report shim=$build/src/interpose/libgpumemtrace.so
ln -s "$build/tests/invariants/gpumem-report" "$tools/bin/gpumem-report"
ln -s "$shim" "$tools/lib/libgpumemtrace.so"
ln -s "$build/tests/sim/libcudart.so.13" "$tools/lib/libcudart.so"
python=$(command -v /usr/bin/python3 || command -v python3)
ln -s "$python" "$tools/bin/python"
ln -s "$python" "$tools/bin/python3"
install "$here"/launchers/* "$tools/bin"

# A clone that is built: what ./demo needs to run, and nothing is installed or compiled meanwhile.
mkdir "$folder/tools"
cp "$source/demo" "$folder"
cp "$source/tools/setup.sh" "$folder/tools"
ln -s "$build" "$folder/build"
printf '#!/bin/sh\n' > "$tools/bin/ninja"
printf '#!/bin/sh\necho ok installed\n' > "$tools/bin/dpkg-query"

# What the wheel holds, without building it.
cp -r "$source/python/gpumemtrace" "$tools/python"
bundle=$tools/python/gpumemtrace/bundle/lib
mkdir -p "$bundle/gpumemtrace"
cp "$shim" "$bundle" # they look for each other where they lie
cp "$report" "$bundle/gpumemtrace"
loader=$(compgen -G '/lib64/ld-linux*.so.*' || compgen -G '/lib/ld-linux*.so.*')
cp -L "$loader" "$bundle/gpumemtrace"
printf '#!/bin/sh\nexec python -m gpumemtrace "$@"\n' > "$tools/bin/gpumemtrace"
info=$tools/python/gpumemtrace-0.dist-info
mkdir "$info"
printf 'Metadata-Version: 2.1\nName: gpumemtrace\nVersion: 0\n' > "$info/METADATA"
"$python" - "$source/python/setup.cfg" > "$info/entry_points.txt" << 'END'
import configparser, sys
setup = configparser.ConfigParser()
setup.read(sys.argv[1])
for group, points in setup["options.entry_points"].items():
    print(f"[{group}]{points}")
END
if "$python" -c 'import pytest' 2> /dev/null; then
	printf '#!/bin/sh\nexec python -m pytest -p no:cacheprovider "$@"\n' > "$tools/bin/pytest"
fi
chmod +x "$tools"/bin/*

# Programs, and what they recorded.
export PATH=$tools/bin:$PATH LD_LIBRARY_PATH=$tools/lib:$build/tests/sim GPUMEMTRACE_QUIET=1
cd "$folder"
cp -r "$source"/examples .
cp examples/train.py .
record() { # record FILE PROGRAM ARGUMENT...
	local file=$1
	shift
	LD_PRELOAD=libgpumemtrace.so GPUMEMTRACE_OUT=$file "$@" > /dev/null
}
record train.gmt python train.py 50
record old.gmt python train.py 20
record new.gmt python train.py 40
record small.gmt python train.py 5 8
record large.gmt python train.py 5 16
cp "$source"/tests/golden/torch-2.11/torch-2.11-native.pickle run.pickle
mkdir jobs
for rank in 0 1; do
	RANK=$rank LOCAL_RANK=$rank WORLD_SIZE=2 record "jobs/rank$rank.gmt" python train.py 5
done
if command -v c++ > /dev/null; then
	c++ -g -I "$source/include" -o app examples/app.cpp -L .tools/lib -lcudart
fi
if gpumem-report html -o page.html old.gmt > /dev/null 2>&1; then
	touch .tools/has_page
	rm page.html
fi

#!/usr/bin/env bats
# The wheel: built without a network, installed into a clean environment of every CPython at hand, where its
# commands and functions are held against what a program did on the simulated GPU.
# SOURCE, BUILD, SIM, BUNDLE come from meson.

bats_require_minimum_version 1.5.0

setup_file() {
	[ -n "$(builder)" ] || skip "no python3-setuptools and python3-wheel here"
	bundle=$BATS_FILE_TMPDIR/$(basename "$BUNDLE")
	"$SOURCE/packaging/bundle.sh" "$BUILD" "$bundle"
	export wheel
	wheel=$("$SOURCE/packaging/wheel.sh" "$bundle" "$BATS_FILE_TMPDIR")
}

builder() {
	local python
	for python in python3 /usr/bin/python3; do
		"$python" -c 'import setuptools, wheel' 2> /dev/null && echo "$python"
	done
}

setup() {
	work=$BATS_TEST_TMPDIR
	export PIP_NO_INDEX=1 PIP_DISABLE_PIP_VERSION_CHECK=1 LD_LIBRARY_PATH=$SIM
	unset PYTHONPATH LD_PRELOAD
}

# interpreters of 3.8 to 3.13, one of each minor
pythons() {
	local python
	for python in $(compgen -G "$HOME/.pyenv/versions/*/bin/python") /usr/bin/python3 /usr/local/bin/python3; do
		[ -x "$python" ] && "$python" -c 'import sys, venv, ensurepip
sys.exit(not (3, 8) <= sys.version_info[:2] <= (3, 13))' 2> /dev/null &&
			echo "$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])') $python"
	done | sort -V -u -k 1,1
}

@test "the tag is the shim's floor, and the archive is well made" {
	floor=$("$SOURCE/packaging/glibc_floor.sh" "$BUILD/src/interpose/libgpumemtrace.so")
	[ "$(basename "$wheel")" = "gpumemtrace-$("$BUILD/tools/gpumem-report/gpumem-report" --version |
		cut -d' ' -f2)-py3-none-manylinux_${floor/./_}_$(uname -m).whl" ]
	python3 - "$wheel" <<'PYTHON'
import base64, csv, hashlib, io, sys, zipfile

wheel = zipfile.ZipFile(sys.argv[1])
names = set(wheel.namelist())
info = next(name.split("/")[0] for name in names if ".dist-info/" in name)
rows = list(csv.reader(io.StringIO(wheel.read(info + "/RECORD").decode())))
assert {row[0] for row in rows} == names
for name, digest, _ in rows:
    if digest:
        kind, value = digest.split("=")
        own = base64.urlsafe_b64encode(hashlib.new(kind, wheel.read(name)).digest()).rstrip(b"=").decode()
        assert own == value, name
assert "Root-Is-Purelib: false" in wheel.read(info + "/WHEEL").decode()
assert "Requires-Python: >=3.8" in wheel.read(info + "/METADATA").decode()
assert "gpumemtrace/py.typed" in names
tool = wheel.getinfo("gpumemtrace/bundle/lib/gpumemtrace/gpumem-report")
assert tool.external_attr >> 16 & 0o111, "not executable"
PYTHON
}

@test "every CPython from 3.8 to 3.13: clean environment, no index, no compiler; commands and functions" {
	cat > "$work/program.py" <<'PYTHON'
import asyncio
import ctypes
import json
import os
import sys

import gpumemtrace

cudart = ctypes.CDLL("libcudart.so.13")


def allocate(size):
    address = ctypes.c_void_p()
    assert cudart.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(size)) == 0
    return address


@gpumemtrace.region("step")
def step(size):
    """Doc."""
    cudart.cudaFree(allocate(size))
    return size


@gpumemtrace.region("later")
async def later():
    await asyncio.sleep(0)
    return gpumemtrace.live_bytes()


before = gpumemtrace.snapshot("early.gmt")
kept = allocate(1000)
with gpumemtrace.region("evaluation"):
    gpumemtrace.mark("inside")
assert step(5000) == 5000 and step.__doc__ == "Doc." and step.__name__ == "step"
said = [gpumemtrace.is_active(), before, gpumemtrace.live_bytes(), gpumemtrace.live_bytes(0),
        gpumemtrace.live_bytes(1), gpumemtrace.peak_bytes(), asyncio.run(later())]
gpumemtrace.reset_peak()
said += [gpumemtrace.peak_bytes(0), gpumemtrace.snapshot("copy.gmt")]
try:
    gpumemtrace.snapshot("no/such/folder.gmt")
    said.append(None)
except OSError as error:
    said.append(error.filename)
print(json.dumps(said))
sys.exit(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
PYTHON
	mapfile -t found < <(pythons)
	[ ${#found[@]} -gt 0 ] || skip "no CPython from 3.8 to 3.13 with venv and pip here"
	for line in "${found[@]}"; do
		version=${line% *}
		echo "CPython $version" | tee -a "$work/ran"
		"${line#* }" -m venv "$work/$version"
		bin=$work/$version/bin
		CC=/bin/false PATH=/usr/bin:/bin "$bin/python" -m pip install -q "$wheel"
		cd "$work"
		rm -f ./*.gmt
		[ "$("$bin/python" program.py)" = '[false, false, 0, 0, 0, 0, 0, 0, false, null]' ]
		run --separate-stderr "$bin/gpumemtrace" run -q -o out.gmt --stacks python program.py 3
		[ "$status" -eq 3 ]
		[[ $output == *'[true, false, 1000, 1000, 0, 6000, 1000, 1000, true, "no/such/folder.gmt"]'* ]]
		[ "$("$bin/gpumem-report" summary --json copy.gmt |
			jq -c '[.totals[0].current_bytes, [.marks[].name]]')" = \
			'[1000,["evaluation","inside","evaluation end","step","step end","later","later end","snapshot"]]' ]
		# the setting came through: Python's frames alone
		[ "$("$bin/gpumem-report" summary --json out.gmt | jq -c '[.sites[].stack[] |
			[.kind, (.function | split(".")[-1])]] | unique')" = \
			'[["python","<module>"],["python","allocate"],["python","inner"],["python","step"]]' ]
		# a module, a gate that fails, an option that does not exist
		run "$bin/gpumemtrace" run -q -o out.gmt --check --max-peak=4KiB -m program
		[ "$status" -eq 5 ]
		run "$bin/gpumemtrace" run --nonsense program.py
		[ "$status" -eq 2 ]
		"$bin/python" -m gpumemtrace --help > /dev/null
		rm -rf "${work:?}/$version"
	done
	[ "$(wc -l < "$work/ran")" -eq ${#found[@]} ]
	echo "# ran: $(tr '\n' ' ' < "$work/ran")" >&3
}

@test "an environment whose path the loader cannot take: a sentence" {
	mapfile -t found < <(pythons)
	[ ${#found[@]} -gt 0 ] || skip "no CPython from 3.8 to 3.13 with venv and pip here"
	line=${found[-1]}
	"${line#* }" -m venv "$work/with space"
	# a script's first line cannot name such an interpreter
	"$work/with space/bin/python" -m pip install -q "$wheel"
	echo 'print("ran")' > "$work/program.py"
	run "$work/with space/bin/python" -m gpumemtrace run "$work/program.py"
	[ "$status" -eq 2 ]
	[[ $output == *"cannot be preloaded: the loader takes spaces"* ]]
}

@test "types: mypy finds the functions typed" {
	python=/usr/bin/python3
	"$python" -c 'import mypy' 2> /dev/null || skip "no mypy here"
	"$python" -m mypy --strict --follow-imports=silent "$SOURCE/python/gpumemtrace/"{__init__,_watch,_peaks,_magic}.py
}

@test "the pytest plugin: limits, leaks, warm-ups, stacks, the table" {
	/usr/bin/python3 -c 'import pytest, venv, ensurepip, sys; sys.exit(int(pytest.__version__.split(".")[0]) < 7)' 2> /dev/null ||
		skip "no pytest from 7.0 on here"
	/usr/bin/python3 -m venv --system-site-packages "$work/environment"
	"$work/environment/bin/python" -m pip install -q "$wheel"
	cd "$work"
	"$work/environment/bin/python" -m pytest -q -p pytester -p no:cacheprovider "$SOURCE/tests/package/test_plugin.py"
}

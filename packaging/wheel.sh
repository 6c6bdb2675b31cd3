#!/usr/bin/env bash
# A wheel for any CPython from 3.8 on, of the portable tarball:  wheel.sh TARBALL FOLDER
# Needs setuptools and wheel of the system; the network is not used. Prints the wheel's path.
set -eu
tarball=$1 out=$2
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$out"
out=$(cd "$out" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cp -r "$here/../python/." "$work"
cp "$here/../LICENSE" "$work"
sed -n "s/^  version: '\(.*\)',/\1/p" "$here/../meson.build" > "$work/VERSION"
mkdir "$work/gpumemtrace/bundle"
tar -C "$work/gpumemtrace/bundle" --strip-components=1 -xzf "$tarball"
rm -rf "$work/gpumemtrace/bundle/share/"{bash-completion,zsh,fish} # for a system's shell, not a virtual environment's
floor=$("$here/glibc_floor.sh" "$work/gpumemtrace/bundle/lib/libgpumemtrace.so")
for python in python3 /usr/bin/python3 none; do
	"$python" -c 'import setuptools, wheel' 2> /dev/null && break
done
if [ "$python" = none ]; then
	echo "setuptools and wheel are missing: apt-get install python3-setuptools python3-wheel" >&2
	exit 1
fi
cd "$work"
export GPUMEMTRACE_WHEEL_PLATFORM=manylinux_${floor/./_}_$(uname -m)
"$python" -c 'import sys
from setuptools import build_meta
build_meta.build_wheel(sys.argv[1])' "$out" > log 2>&1 || { tail -n 20 log >&2; exit 1; }
ls "$out"/gpumemtrace-"$(cat VERSION)"-py3-none-"$GPUMEMTRACE_WHEEL_PLATFORM".whl

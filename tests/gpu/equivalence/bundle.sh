#!/usr/bin/env bash
# Adds what run.sh needs to a bundle (tests/gpu/bundle.sh):  bundle.sh BUILD FOLDER
set -eu
build=$1 folder=$2
mkdir -p "$folder"
cp "$build/src/interpose/libgpumemtrace.so" "$folder/"
for program in dump families_static families_shared; do
	cp "$build/tests/gpu/equivalence/$program" "$folder/"
done
[ ! -e "$build/tests/gpu/equivalence/libloads.so" ] ||
	cp "$build/tests/gpu/equivalence/libloads.so" "$folder/"

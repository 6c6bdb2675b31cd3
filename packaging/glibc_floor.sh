#!/usr/bin/env bash
# The newest version of glibc whose names a file needs, as "2.28":  glibc_floor.sh FILE...
set -eu
readelf --wide --version-info "$@" | awk '
	/Version needs section/ {needs = 1}
	/Version (definition|symbols) section/ {needs = 0}
	needs' | grep -o 'GLIBC_[0-9.]*' | sed s/GLIBC_// | sort -V | tail -n 1

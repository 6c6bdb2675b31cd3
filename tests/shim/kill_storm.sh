#!/usr/bin/env bash
# The long form of the kill storm, 1,000 kills by default: kill_storm.sh BUILD [KILLS]. Not in the suite.
set -eu
build=$(cd "${1:?usage: kill_storm.sh BUILD [KILLS]}" && pwd)
cd "$(dirname "$0")"
export KILLS=${2:-1000} SIM=$build/tests/sim PROGRAMS=$build/tests/shim
export SHIM=$build/src/interpose/libgpumemtrace.so REPORT=$build/tools/gpumem-report/gpumem-report
exec bats --timing killed.bats

#!/usr/bin/env bash
# The long form of size_is_bounded.c, not in the suite: file, private and resident memory after 10^8 events are
# those after 10^6; and the verdicts after 10^8 events of a leaking and of a clean loop. long.sh BUILD
set -eu
build=$(cd "${1:?usage: long.sh BUILD}" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$build/tests/unit/track/size_is_bounded" 1000000 "$work" 100
exec "$build/tests/unit/growth/test_growth_cases" hundred_million_events

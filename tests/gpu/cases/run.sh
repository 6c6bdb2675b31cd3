#!/usr/bin/env bash
# Cases of docs/cases.md that need a framework: what people ran into, made again, and what the report says.
#   run.sh BUNDLE OUT [shared|alone]     shared: what may run beside others; alone: what looks at the
#                                        device's free memory or takes most of it
# OUT/case-N.txt, case-N.oom.txt and so on are for quoting.
# shellcheck source-path=SCRIPTDIR source=../lib.sh
. "$(dirname "$0")/../lib.sh"
part=${3:-both}

# case_of NUMBER STATUS-OF-CHECK COMMAND-FOR-QUOTING [SETTING=VALUE...]
case_of() {
	local number=$1 wanted=$2 command=$3 name=case-$1 script=cases.py
	shift 3
	[ "$number" = 30 ] && script=case_30.py
	ran "$name" 100 "$@" "$python" "$here/$script" "$number" && document "$name" || return
	report "$command" "$out/$name.gmt" 2>&1 | head -n 80 > "$out/$name.$command.txt"
	checked "$wanted" "$name"
	compare "$here/compare.py" "$number" "$out/$name.said" "$out/$name.json" "$out/$name.txt"
}

if [ "$part" != alone ]; then
	piece 21 case_of 21 0 fragmentation
	piece 23 case_of 23 0 sites
	piece 24 case_of 24 4 oom
	piece 25 case_of 25 1 leaks
	piece 26 case_of 26 1 leaks
	piece 27 case_of 27 0 sites
	piece 31 case_of 31 0 fragmentation PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync
	piece 39 case_of 39 0 fragmentation PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:1024
	together
fi
if [ "$part" != shared ]; then
	piece 22 case_of 22 4 oom GPUMEMTRACE_CAPACITY=14GiB
	together
	piece 40 case_of 40 4 oom GPUMEMTRACE_CAPACITY=4GiB
	together
	piece 30 case_of 30 0 leaks
fi
finish cases

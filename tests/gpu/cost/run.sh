#!/usr/bin/env bash
# What an allocation and its free take: cudaMalloc and cudaMallocAsync loops, plain, with the shim (full
# stacks), with its CUPTI backend, and under compute-sanitizer's leak check, in turn; plain and with the shim
# within one process; then PyTorch, in processes beside each other, with the recording of blocks switched on and
# off within one, all of them and a sample, and with the shim awake and asleep within one.
#   run.sh BUNDLE OUT [ROUNDS [TORCH_ROUNDS]]      3 and 1; a round is about 20 s, one of PyTorch 60 s and 240 s once
# EARLIER: an earlier build's shim, which takes part in the turns within one process.
# OUT gets load.jsonl and torch_cost.jsonl, a line a run; the medians are printed.
# shellcheck source-path=SCRIPTDIR source=../lib.sh
. "$(dirname "$0")/../lib.sh"
rounds=${3:-3} torch_rounds=${4:-1}
sanitizer=$(command -v compute-sanitizer || true)
shim=$bundle/libgpumemtrace.so

# libcupti of the wheel or of the toolkit
cupti=$("$python" - <<'END'
import glob
import sysconfig
found = glob.glob(sysconfig.get_path("purelib") + "/nvidia/*/lib/libcupti.so.1*") + \
    glob.glob("/usr/local/cuda/lib64/libcupti.so.1*") + glob.glob("/usr/local/cuda/extras/CUPTI/lib64/libcupti.so.1*")
print(found[0].rsplit("/", 1)[0] if found else "")
END
)

# load ROUND API PAIRS MODE COMMAND...: one line of load.jsonl
load() {
	local round=$1 api=$2 pairs=$3 mode=$4 line
	shift 4
	rm -f "$out/load.$api.$mode.gmt"
	line=$(timeout -k 5 40 env GPUMEMTRACE_OUT="$out/load.$api.$mode.gmt" "$@" "$bundle/load" --api "$api" \
		--pairs "$pairs" 2> "$out/load.err" | grep '^{')
	if [[ $line != *'"failed": 0'* ]]; then
		echo "FAIL load: $api, $mode: ${line:-no figures} $(tail -n 1 "$out/load.err")"
		return
	fi
	echo "{\"round\": $round, \"api\": \"$api\", \"mode\": \"$mode\", ${line#\{}" | tee -a "$out/load.jsonl"
}

switched() { # STEP [SETTING=VALUE...]
	local step=$1
	shift
	[ $# = 0 ] || echo "the next with $*:"
	judged switched 120 env LD_PRELOAD="$bundle/switch.so $shim" GPUMEMTRACE_OUT="$out/switched.$step.gmt" "$@" \
		"$python" "$here/switched.py" "$bundle/switch.so" 25 "$step"
}

asleep() { # STEP
	judged asleep 60 env LD_PRELOAD="$shim" GPUMEMTRACE_START=asleep GPUMEMTRACE_OUT="$out/asleep.$1.gmt" \
		"$python" "$here/asleep.py" 20 "$1"
}

turns() { # API ROUNDS[xTHREADS]
	cp "$shim" "$out/again.so" # a library is loaded once
	cp "$shim" "$out/sampled.so"
	TMPDIR=$out judged turns 90 "$bundle/turns" "$1" "$2" "$shim" "$out/again.so,GPUMEMTRACE_STACKS=off" \
		"$out/sampled.so,GPUMEMTRACE_SAMPLE=16MiB" ${EARLIER:+"$EARLIER"}
}

one_round() { # ROUND
	local api
	for api in async device; do
		load "$1" $api 20000 plain
		load "$1" $api 20000 shim LD_PRELOAD="$shim"
		load "$1" $api 20000 cupti LD_PRELOAD="$shim" GPUMEMTRACE_BACKEND=cupti \
			LD_LIBRARY_PATH="$cupti${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
		[ -z "$sanitizer" ] || load "$1" $api 2000 sanitizer "$sanitizer" --leak-check full
	done
}

rm -f "$out/load.jsonl" "$out/torch_cost.jsonl"
{
	[ -n "$sanitizer" ] || echo "skip sanitizer: there is no compute-sanitizer"
	for ((round = 0; round < rounds; round++)); do one_round "$round"; done
	[ "$rounds" = 0 ] || compare "$here/summary.py" "$out/load.jsonl"
	[ "$rounds" = 0 ] || for turn in async,301 device,101 async,101x4 async,101x16; do turns "${turn%,*}" "${turn#*,}"; done
	[ "$torch_rounds" = 0 ] || "$python" "$suite/torch_cost.py" pairs "$shim" "$out" "$torch_rounds" 2>&1 ||
		echo "FAIL torch_cost.py: ended with $?"
	[ "$torch_rounds" = 0 ] || switched train
	[ "$torch_rounds" = 0 ] || switched inference
	[ "$torch_rounds" = 0 ] || switched train GPUMEMTRACE_SAMPLE=16MiB
	[ "$torch_rounds" = 0 ] || switched inference GPUMEMTRACE_SAMPLE=16MiB
	[ "$torch_rounds" = 0 ] || asleep train
	[ "$torch_rounds" = 0 ] || asleep inference
} | tee "$out/lines.txt"
echo "cost: $(grep -c '^FAIL ' "$out/lines.txt") failed, ${SECONDS} s"
! grep -q '^FAIL ' "$out/lines.txt"

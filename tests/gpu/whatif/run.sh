#!/usr/bin/env bash
# What-if on a real GPU: with GPUMEMTRACE_CAPACITY PyTorch meets its OOM at the batch of a card of that size,
# within 2 %; with GPUMEMTRACE_FAIL its retries recover. There is no such card: another process holds so
# much that exactly its size is free before the program's context is made.
#   run.sh BUNDLE OUT [shared|alone]     shared: what may run beside others; alone: what looks at the
#                                        device's free memory
# shellcheck source-path=SCRIPTDIR source=../lib.sh
. "$(dirname "$0")/../lib.sh"
part=${3:-both}
sizes="16 24"

pretended() { # GIB
	ran "capacity-$1" 120 GPUMEMTRACE_CAPACITY="$1GiB" "$python" "$here/largest_batch.py" || return
	report oom "$out/capacity-$1.gmt" 2>&1 | head -n 60 > "$out/capacity-$1.oom.txt"
	echo "ok capacity-$1: $(tail -n 1 "$out/capacity-$1.said")"
}

faults() { # NAME SETTING
	ran "$1" 60 GPUMEMTRACE_FAIL="$2" "$python" "$here/faults.py" && document "$1" &&
		compare "$here/compare.py" faults "$1" "$out/$1.said" "$out/$1.json"
}

seeded() {
	faults fail-seed p=0.15,seed=7
	ran fail-seed-again 60 GPUMEMTRACE_FAIL=p=0.15,seed=7 "$python" "$here/faults.py" &&
		compare "$here/compare.py" same fail-seed "$out/fail-seed.said" "$out/fail-seed-again.said"
}

beside_ballast() { # GIB
	local line ballast
	coproc BALLAST { exec timeout 150 "$python" "$here/ballast.py" "$bundle/libcudart.so.13" $(($1 << 30)); }
	ballast=$BALLAST_PID
	if ! read -r -t 60 line <&"${BALLAST[0]}"; then
		echo "FAIL ballast-$1: the ballast did not come"
		kill "$ballast"
		return
	fi
	echo "ok ballast-$1: $line bytes free before the program begins"
	if timeout -k 5 120 "$python" "$here/largest_batch.py" > "$out/ballast-$1.said" 2> "$out/ballast-$1.err"; then
		compare "$here/compare.py" batch "$1" "$out/capacity-$1.said" "$out/ballast-$1.said"
	else
		echo "FAIL ballast-$1: $(tail -n 1 "$out/ballast-$1.err")"
	fi
	eval "exec ${BALLAST[1]}>&-"
	wait "$ballast"
}

if [ "$part" != alone ]; then
	piece fail-5 faults fail-5 5
	piece fail-from-40 faults fail-from-40 40+
	piece fail-seed seeded
	together
fi
if [ "$part" != shared ]; then
	for size in $sizes; do
		piece "capacity-$size" pretended "$size"
		together
		piece "ballast-$size" beside_ballast "$size"
		together
	done
fi
finish whatif

#!/usr/bin/env bash
# Programs that were started without the shim, attached to and left, on a real GPU: their results are those of an
# undisturbed run, a planted leak is named with its Python line, and what was recorded is NVML's rise.
#   run.sh BUNDLE OUT
# shellcheck source-path=SCRIPTDIR source=../lib.sh
. "$(dirname "$0")/../lib.sh"

steps=600

# nvml PID: the process's MiB by nvidia-smi
nvml() { nvidia-smi --query-compute-apps=pid,used_memory --format=csv,noheader,nounits | sed -n "s/^$1, *//p"; }

on() { # KIND
	local kind=$1 folder=$out/$1 pid first
	rm -rf "$folder" && mkdir -p "$folder"
	ALONE=1 timeout 240 "$python" "$here/programs.py" "$kind" $steps "$folder" > "$folder/alone" 2> "$folder/alone.err" ||
		{ echo "FAIL $kind alone: $(tail -n 1 "$folder/alone.err")"; return; }
	rm -f "$folder/ready" "$folder/leaked"
	timeout 300 "$python" "$here/programs.py" "$kind" $steps "$folder" > "$folder/said" 2> "$folder/err" &
	pid=$!
	until [ -e "$folder/ready" ]; do kill -0 $pid || { echo "FAIL $kind: $(tail -n 1 "$folder/err")"; return; }; sleep 0.1; done
	pid=$(pgrep -P $pid)
	sleep 1
	if ! report attach --wait 30s --interrupt -o "$folder/out.gmt" "$pid" > "$folder/attach" 2>&1; then
		echo "FAIL $kind attach: $(tail -n 1 "$folder/attach")"
		touch "$folder/attached" "$folder/detached"
		return
	fi
	first=$(nvml "$pid")
	touch "$folder/attached"
	until [ -e "$folder/leaked" ]; do kill -0 "$pid" || break; sleep 0.1; done
	echo "${first:-0} $(nvml "$pid")" > "$folder/nvml"
	report detach --interrupt "$pid" > "$folder/detach" 2>&1 || echo "FAIL $kind detach: $(tail -n 1 "$folder/detach")"
	touch "$folder/detached"
	while kill -0 "$pid" 2> /dev/null; do sleep 0.1; done
	report summary --json "$folder/out.gmt" > "$folder/document"
	report summary "$folder/out.gmt" > "$folder/text" 2>&1
	report leaks "$folder/out.gmt" >> "$folder/text" 2>&1
	echo "ok $kind attach: $(sed -n 2p "$folder/attach")"
	[ ! -s "$folder/err" ] || echo "   $kind stderr: $(tail -n 1 "$folder/err")"
	compare "$here/check.py" "$kind" "$folder/alone" "$folder/said" "$folder/document" "$folder/nvml"
}

# The routes that are there without CUPTI, which another tool may hold.
slots() {
	GPUMEMTRACE_BACKEND=preload on "$1-slots"
}

piece train on train
piece train-slots slots train
piece generate on generate
piece cupy on cupy
piece cupy_pool on cupy_pool
piece jax on jax
together
finish attach

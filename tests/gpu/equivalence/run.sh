#!/usr/bin/env bash
# Both backends on a real GPU: the same programs under each, compared event by event, then what each
# costs.  run.sh BUNDLE OUT [PIECE...]     BUNDLE: see tests/gpu/bundle.sh and bundle.sh beside this
# Pieces: families pairs train cupy jax profiler nccl, all of them if none is named (three minutes; nccl
# needs two GPUs), and loads: whether wrappers outside gpumemtrace see the same module loads (loads.py).
# Prints as it goes. Status 1 if the backends differ in what is not explained (docs/backends.md).
# Needs no toolkit: libcupti is the wheel's or the installed one.
set -u
bundle=$(cd "$1" && pwd) out=$(mkdir -p "$2" && cd "$2" && pwd)
shift 2
here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-python3}
export PYTHONDONTWRITEBYTECODE=1
[ $# -gt 0 ] || set -- families pairs train cupy jax profiler nccl

# Where libcupti and cudart are, for programs that bring none.
libraries=$("$python" - <<'END'
import glob, os, site, sysconfig
folders = [sysconfig.get_paths()["purelib"], *site.getsitepackages(), site.getusersitepackages()]
found = [os.path.dirname(path) for folder in folders for pattern in
         ("nvidia/*/lib/libcupti.so.1*", "nvidia/*/lib/libcudart.so.13")
         for path in glob.glob(os.path.join(folder, pattern))]
found += [path for path in ("/usr/local/cuda/lib64", "/usr/local/cuda/extras/CUPTI/lib64")
          if os.path.isdir(path)]
print(":".join(dict.fromkeys(found)))
END
)

# said NAME MODE START: a line on a run that began at START, in nanoseconds
said() {
	printf '%-18s %-8s %5d ms  %s\n' "$1" "$2" $((($(date +%s%N) - $3) / 1000000)) \
		"$(tail -n 1 "$out/said")"
}

# under MODE NAME PROGRAM ARG...: one run; its dump is NAME.MODE.json, its figures are added to
# NAME.MODE.times. "control" is a second run under the preload backend.
under() {
	local mode=$1 name=$2 start
	shift 2
	local setting=(GPUMEMTRACE_LOG=info GPUMEMTRACE_QUIET=1 "GPUMEMTRACE_OUT=$out/$name.$mode.gmt")
	case $mode in
	preload | control) setting+=("LD_PRELOAD=$bundle/libgpumemtrace.so") ;;
	cupti) setting+=("LD_PRELOAD=$bundle/libgpumemtrace.so" GPUMEMTRACE_BACKEND=cupti) ;;
	injected) setting+=("CUDA_INJECTION64_PATH=$bundle/libgpumemtrace.so") ;;
	esac
	rm -f "$out/$name.$mode.gmt"
	start=$(date +%s%N)
	env "${setting[@]}" timeout -k 5 100 "$@" > "$out/said" 2> "$out/$name.$mode.err" || {
		echo "FAILED ($?): $name under $mode: $(tail -n 3 "$out/$name.$mode.err")"
		failed=1
	}
	tail -n 1 "$out/said" | grep '^{' >> "$out/$name.$mode.times"
	said "$name" "$mode" "$start"
	[ "$name" = pairs ] || [ ! -e "$out/$name.$mode.gmt" ] ||
		"$bundle/dump" "$out/$name.$mode.gmt" > "$out/$name.$mode.json"
}

c_program() {
	LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$libraries under "$@"
}

run_families() {
	local program mode
	for program in families_static families_shared; do
		for mode in preload cupti control; do c_program "$mode" "$program" "$bundle/$program"; done
	done
	# the same program once more without any preload, compared as if it were the CUPTI run
	for mode in preload control; do c_program "$mode" families_alone "$bundle/families_static"; done
	c_program injected families_alone "$bundle/families_static"
	mv "$out/families_alone.injected.json" "$out/families_alone.cupti.json"
}

run_pairs() {
	local round mode
	for round in 1 2 3; do
		for mode in plain preload cupti injected; do
			c_program "$mode" pairs "$bundle/families_static" time
		done
	done
}

run_train() {
	local mode
	for mode in plain preload cupti control cupti plain; do
		under "$mode" train "$python" "$here/train.py"
	done
	export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
	for mode in preload cupti control; do
		under "$mode" train_expandable "$python" "$here/train.py"
	done
	unset PYTORCH_CUDA_ALLOC_CONF
}

run_cupy() {
	local mode
	for mode in preload cupti control; do under "$mode" cupy "$python" "$here/cupy_arrays.py"; done
}

# XLA's autotuner goes by what it measures and shares its work among threads: without it two runs are
# the same (loads is about the modules).
run_jax() {
	local mode
	export XLA_PYTHON_CLIENT_PREALLOCATE=false XLA_FLAGS=--xla_gpu_autotune_level=0
	for mode in preload cupti control; do under "$mode" jax "$python" "$here/jax_steps.py"; done
	unset XLA_PYTHON_CLIENT_PREALLOCATE XLA_FLAGS
}

run_profiler() {
	local mode
	for mode in plain cupti; do under "$mode" profiler "$python" "$here/profiler_after.py"; done
}

# ranks MODE: a job of two ranks; each has its dump
ranks() {
	local mode=$1 backend=$1 start rank
	[ "$mode" = control ] && backend=preload
	rm -rf "$out/ranks.$mode"
	mkdir -p "$out/ranks.$mode"
	start=$(date +%s%N)
	env LD_PRELOAD="$bundle/libgpumemtrace.so" GPUMEMTRACE_BACKEND="$backend" GPUMEMTRACE_LOG=info \
		GPUMEMTRACE_QUIET=1 GPUMEMTRACE_OUT="$out/ranks.$mode/%r.gmt" OMP_NUM_THREADS=1 \
		timeout -k 5 60 "$python" -m torch.distributed.run --standalone --nproc-per-node 2 \
		"$here/ddp.py" > "$out/said" 2> "$out/nccl.$mode.err" || {
		echo "FAILED ($?): nccl under $mode: $(tail -n 3 "$out/nccl.$mode.err")"
		failed=1
	}
	said nccl "$mode" "$start"
	for rank in 0 1; do
		"$bundle/dump" "$out/ranks.$mode/$rank.gmt" > "$out/nccl_rank$rank.$mode.json"
	done
}

run_nccl() {
	local mode
	if [ "$(nvidia-smi -L | wc -l)" -lt 2 ]; then
		echo "one GPU: NCCL between two is left out"
		return
	fi
	for mode in preload cupti control; do ranks "$mode"; done
}

# loading NAME SETTING...: a JAX program with loads.c's wrappers in it, recorded or not
loading() {
	local name=$1 start
	shift
	start=$(date +%s%N)
	env "$@" LOADS_OUT="$out/loads/$name.loads" GPUMEMTRACE_QUIET=1 \
		GPUMEMTRACE_OUT="$out/loads/$name.gmt" XLA_PYTHON_CLIENT_PREALLOCATE=false \
		timeout -k 5 60 "$python" "$here/jax_steps.py" > "$out/said" 2> "$out/loads/$name.err" || {
		echo "FAILED ($?): $name: $(tail -n 3 "$out/loads/$name.err")"
		failed=1
	}
	said loads "$name" "$start"
	[ ! -e "$out/loads/$name.gmt" ] ||
		"$bundle/dump" "$out/loads/$name.gmt" > "$out/loads/$name.json"
}

run_loads() {
	local round shim=$bundle/libgpumemtrace.so loads=$bundle/libloads.so
	rm -rf "$out/loads"
	mkdir "$out/loads"
	for round in 1 2; do
		loading "wrapped$round" LD_PRELOAD="$loads"
		loading "preload$round" LD_PRELOAD="$loads:$shim"
		loading "cupti$round" LD_PRELOAD="$loads:$shim" GPUMEMTRACE_BACKEND=cupti
	done
	"$python" "$here/loads.py" "$out/loads" || failed=1
}

failed=0
rm -f "$out"/*.times "$out"/*.json
date -u +%F
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
echo "libraries: $libraries"
for piece; do
	echo "-- $piece, $SECONDS s"
	case $piece in
	families) run_families ;;
	pairs) run_pairs ;;
	train) run_train ;;
	cupy) run_cupy ;;
	jax) run_jax ;;
	profiler) run_profiler ;;
	nccl) run_nccl ;;
	loads) run_loads ;;
	*)
		echo "FAILED: there is no piece $piece"
		failed=1
		;;
	esac
done
grep -hs '^gpumemtrace' "$out"/*.cupti.err "$out"/*.injected.err | sort | uniq -c

echo
"$python" "$here/overhead.py" "$out"
echo
if [ -n "$(find "$out" -maxdepth 1 -name '*.preload.json')" ]; then
	"$python" "$here/compare.py" --table "$out" | tee "$out/table.txt"
	[ "${PIPESTATUS[0]}" -eq 0 ] || failed=1
fi
exit $failed

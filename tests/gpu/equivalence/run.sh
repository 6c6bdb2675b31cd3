#!/usr/bin/env bash
# Both backends on a real GPU: the same programs under each, compared event by event, then what each
# costs.  run.sh BUNDLE OUT     BUNDLE: see tests/gpu/bundle.sh and bundle.sh beside this
# About two minutes. Status 1 if the backends differ in what is not explained (docs/backends.md).
# Needs no toolkit: libcupti is the wheel's or the installed one.
set -u
bundle=$(cd "$1" && pwd) out=$(mkdir -p "$2" && cd "$2" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-python3}
export PYTHONDONTWRITEBYTECODE=1

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
	env "${setting[@]}" timeout 100 "$@" > "$out/said" 2> "$out/$name.$mode.err" ||
		echo "FAILED ($?): $name under $mode: $(tail -n 3 "$out/$name.$mode.err")"
	tail -n 1 "$out/said" | grep '^{' >> "$out/$name.$mode.times"
	printf '%-18s %-8s %5d ms  %s\n' "$name" "$mode" $((($(date +%s%N) - start) / 1000000)) \
		"$(tail -n 1 "$out/said")"
	[ "$name" = pairs ] || [ ! -e "$out/$name.$mode.gmt" ] ||
		"$bundle/dump" "$out/$name.$mode.gmt" > "$out/$name.$mode.json"
}

c_program() {
	LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$libraries under "$@"
}

rm -f "$out"/*.times "$out"/*.json
date -u +%F
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
"$python" -c 'import torch, cupy, jax
print("torch", torch.__version__, "cupy", cupy.__version__, "jax", jax.__version__)'
echo "libraries: $libraries"

for program in families_static families_shared; do
	for mode in preload cupti control; do c_program $mode $program "$bundle/$program"; done
done
# the same program once more without any preload, compared as if it were the CUPTI run
for mode in preload control; do c_program $mode families_alone "$bundle/families_static"; done
c_program injected families_alone "$bundle/families_static"
mv "$out/families_alone.injected.json" "$out/families_alone.cupti.json"
for round in 1 2 3; do
	for mode in plain preload cupti injected; do
		c_program $mode pairs "$bundle/families_static" time > /dev/null
	done
done

under plain train "$python" "$here/train.py"
under preload train "$python" "$here/train.py"
under cupti train "$python" "$here/train.py"
under control train "$python" "$here/train.py"
under cupti train "$python" "$here/train.py"
under plain train "$python" "$here/train.py"
export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
for mode in preload cupti control; do under $mode train_expandable "$python" "$here/train.py"; done
unset PYTORCH_CUDA_ALLOC_CONF
for mode in preload cupti control; do under $mode cupy "$python" "$here/cupy_arrays.py"; done
export XLA_PYTHON_CLIENT_PREALLOCATE=false
for mode in preload cupti control; do under $mode jax "$python" "$here/jax_steps.py"; done
unset XLA_PYTHON_CLIENT_PREALLOCATE
for mode in plain cupti; do under $mode profiler "$python" "$here/profiler_after.py"; done
grep -h '^gpumemtrace' "$out"/*.cupti.err "$out"/*.injected.err | sort | uniq -c
if [ "$(nvidia-smi -L | wc -l)" -ge 2 ]; then
	for mode in preload cupti; do
		mkdir -p "$out/ranks.$mode"
		env LD_PRELOAD="$bundle/libgpumemtrace.so" GPUMEMTRACE_BACKEND=$mode GPUMEMTRACE_QUIET=1 \
			GPUMEMTRACE_OUT="$out/ranks.$mode/%r.gmt" timeout 100 "$python" -m torch.distributed.run \
			--standalone --nproc-per-node 2 "$here/ddp.py" 2> "$out/ranks.$mode/err"
		for rank in 0 1; do
			"$bundle/dump" "$out/ranks.$mode/$rank.gmt" > "$out/nccl_rank$rank.$mode.json"
		done
	done
else
	echo "one GPU: NCCL between two is left out"
fi

echo
"$python" "$here/overhead.py" "$out"
echo
"$python" "$here/compare.py" --table "$out" | tee "$out/table.txt"
exit "${PIPESTATUS[0]}"

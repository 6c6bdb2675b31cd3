#!/usr/bin/env bash
# sanitizers.sh [--build-only] [BUILD [PLAIN]]: everything that checkers of memory can be run on.
#
# BUILD (build-sanitized) is built by clang with the address and the undefined behaviour sanitizer and
# libFuzzer's harnesses: its unit tests, its simulated GPU, each harness for a minute, and its report
# tool in every test of the whole suite that runs one, on what the plain shim of PLAIN (build-plain)
# records. Every test that runs a program, with poisoned stacks and heap and as another user (tests/hygiene). 64 threads for a minute each, plain and under ThreadSanitizer. The report tool on all golden
# files, and each of its commands on real ones, under valgrind. Half an hour on two cores; the exit status
# tells whether all was clean.
set -u
build_only=
[ "${1:-}" = --build-only ] && { build_only=1; shift; }
source=$(realpath "$(dirname "$0")/..")
build=$(realpath -m "${1:-build-sanitized}") plain=$(realpath -m "${2:-build-plain}")
threads_seconds=${THREADS_SECONDS:-60}
failed=()

step() {
	local name=$1 start=$SECONDS
	shift
	echo "=== $name"
	"$@" || failed+=("$name")
	echo "$((SECONDS - start)) s"
}

if [ ! -f "$build/build.ninja" ]; then
	CC=clang CXX=clang++ meson setup "$build" "$source" -Doptimization=1 -Dfuzzers=true \
		-Db_sanitize=address,undefined -Db_lundef=false || exit 1
fi
ninja -C "$build" || exit 1
[ -z "$build_only" ] || exit 0
[ -f "$plain/build.ninja" ] || meson setup "$plain" "$source" || exit 1
ninja -C "$plain" || exit 1

export ASAN_OPTIONS=exitcode=99:detect_leaks=1:detect_stack_use_after_return=1
export LSAN_OPTIONS=suppressions=$source/tests/lsan.supp:print_suppressions=0
export UBSAN_OPTIONS=halt_on_error=1:exitcode=99:print_stacktrace=1
step "unit tests and simulated GPU" \
	meson test -C "$build" --no-rebuild --print-errorlogs -t 8 --suite unit --suite sim
step "harnesses" meson test -C "$build" --no-rebuild --print-errorlogs --suite fuzz
step "the report tool in the whole suite" \
	python3 "$source/tests/with_tool.py" "$plain" "$build/tools/gpumem-report/gpumem-report"
unset ASAN_OPTIONS LSAN_OPTIONS UBSAN_OPTIONS
for threads in many_threads many_threads_thread; do
	step "64 threads, $threads" "$plain/tests/unit/track/$threads" "${threads_seconds}s" "$plain"
done
step "unusual surroundings" python3 "$source/tests/hygiene/hygiene.py" poisoned "$plain" \
	"$plain/tests/hygiene/dirty.so" --every-case
GPUMEM_REPORT=$plain/tools/gpumem-report/gpumem-report step "the report tool under valgrind" \
	python3 "$source/tests/with_tool.py" "$plain" "$source/tests/valgrind_tool.sh" golden exports import commands
for name in "${failed[@]}"; do
	echo "failed: $name"
done
[ ${#failed[@]} -eq 0 ]

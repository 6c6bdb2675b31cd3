#!/usr/bin/env bash
# sanitizers.sh [--build-only] [BUILD [PLAIN]]: everything that checkers of memory can be run on.
#
# BUILD (build-sanitized) is built by clang with the address and the undefined behaviour sanitizer and
# libFuzzer's harnesses: its unit tests, its simulated GPU, each harness for a minute, and its report
# tool in every test of the whole suite that runs one, on what the plain shim of PLAIN (build-plain)
# records. Every test that runs a program, with poisoned stacks and heap and as another user (tests/hygiene). 64 threads for a minute each, plain and under ThreadSanitizer. The report tool on all golden
# files, and each of its commands on real ones, under valgrind. Half an hour on two cores.
#
# STEPS names the steps to run (all: unit harnesses tool threads surroundings valgrind), TESTS the tests of the
# step `tool`. The last line is "clean: STEPS" or "failed: STEPS"; the exit status tells the same.
set -u
build_only=
[ "${1:-}" = --build-only ] && { build_only=1; shift; }
source=$(realpath "$(dirname "$0")/..")
build=$(realpath -m "${1:-build-sanitized}") plain=$(realpath -m "${2:-build-plain}")
threads_seconds=${THREADS_SECONDS:-60}
steps=${STEPS:-unit harnesses tool threads surroundings valgrind} ran=() failed=()

# step NAME COMMAND...: one part of a step; it is run if STEPS names the step.
step() {
	local name=$1 start=$SECONDS
	shift
	[[ " $steps " == *" $name "* ]] || return 0
	echo "=== $name: $*"
	ran+=("$name")
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
step unit meson test -C "$build" --no-rebuild --print-errorlogs -t 8 --suite unit --suite sim
step harnesses meson test -C "$build" --no-rebuild --print-errorlogs --suite fuzz
read -ra tests <<< "${TESTS:-}"
step tool python3 "$source/tests/with_tool.py" "$plain" "$build/tools/gpumem-report/gpumem-report" "${tests[@]}"
unset ASAN_OPTIONS LSAN_OPTIONS UBSAN_OPTIONS
step threads "$plain/tests/unit/track/many_threads" "${threads_seconds}s" "$plain"
step threads "$plain/tests/unit/track/many_threads_thread" "${threads_seconds}s" "$plain"
step surroundings python3 "$source/tests/hygiene/hygiene.py" poisoned "$plain" \
	"$plain/tests/hygiene/dirty.so" --every-case
GPUMEM_REPORT=$plain/tools/gpumem-report/gpumem-report step valgrind \
	python3 "$source/tests/with_tool.py" "$plain" "$source/tests/valgrind_tool.sh" golden exports import commands
if [ ${#failed[@]} -gt 0 ] || [ ${#ran[@]} -eq 0 ]; then
	echo "failed: ${failed[*]:-no step of that name}"
	exit 1
fi
echo "clean: ${ran[*]}"

#!/usr/bin/env bats
# Other tools in the same process: preloads before and after the shim, allocators, loaders' modes.

load ../helpers

@test "LD_BIND_NOW" {
	LD_BIND_NOW=1 traced "$PROGRAMS/runtime13_O2"
	report
	same live '.totals[0].current_bytes'
}

@test "another preload hooks dlsym, before and after us" {
	local shim=$SHIM program
	for order in "$GUEST/hook_dlsym.so:$shim" "$shim:$GUEST/hook_dlsym.so"; do
		for program in runtime13_O2 runtime_static_O2 driver_O2; do
			rm -f "$work"/out.gmt
			SHIM=$order
			HOOK_TELLS=1 traced "$PROGRAMS/$program" 2> "$work/error"
			report
			same live '.totals[0].current_bytes'
			same peak '.totals[0].peak_bytes'
		done
	done
	grep -q 'dlsym hook used' "$work/error"
}

@test "another preload hooks cudaMalloc, before and after us, cudart 12 and 13" {
	local shim=$SHIM major
	for major in 12 13; do
		rm -f "$work"/out.gmt
		SHIM=$GUEST/hook_malloc.so:$shim
		HOOK_TELLS=1 traced "$PROGRAMS/runtime${major}_O2" 2> "$work/error"
		grep -q 'cudaMalloc hook used' "$work/error"
		report
		# what the hook asks for is what we see: 256 bytes more each, and a block where 0 was asked for
		is '.totals[0].current_bytes' $(($(jq .live "$work/said") + 256 * ($(jq .live_count "$work/said") + 1)))
		rm -f "$work"/out.gmt
		SHIM=$shim:$GUEST/hook_malloc.so
		HOOK_TELLS=1 traced "$PROGRAMS/runtime${major}_O2" 2> "$work/error"
		grep -q 'cudaMalloc hook used' "$work/error"
		report
		# what the program asked for is what we see
		same live '.totals[0].current_bytes'
	done
}

@test "a preload defines syscall() and clock_gettime(), before and after us" {
	local shim=$SHIM
	for SHIM in "$GUEST/hook_libc.so:$shim" "$shim:$GUEST/hook_libc.so"; do
		rm -f "$work"/out.gmt
		GPUMEMTRACE_EVENTS=all traced "$PROGRAMS/runtime13_O2"
		report
		is .process.end '"exit"'
		same live '.totals[0].current_bytes'
	done
}

@test "another copy of the shim, before and after us: the first one records" {
	local shim=$SHIM
	cp "$shim" "$work/libcopy.so"
	for SHIM in "$work/libcopy.so:$shim" "$shim:$work/libcopy.so"; do
		rm -f "$work"/out.gmt*
		traced "$PROGRAMS/runtime13_O2"
		report
		is .process.end '"exit"'
		same live '.totals[0].current_bytes'
		[ "$(ls "$work"/out.gmt* | wc -l)" -eq 1 ]
	done
}

@test "a preload catches crashes as libSegFault does, before and after us" {
	local shim=$SHIM
	for SHIM in "$GUEST/hook_segv.so:$shim" "$shim:$GUEST/hook_segv.so"; do
		for way in segv:139 abort:134; do
			rm -f "$work"/out.gmt*
			run traced "$GUEST/guest_ends" ${way%:*}
			[ "$status" -eq "${way#*:}" ]
			[ "$(grep -c 'segv hook used' <<< "$output")" -eq 1 ]
			[[ $output == *guest_ends* ]]
			report
			is .process.end '"killed"'
			is .file.complete true
			is '[.sites[] | select(.live_bytes == 12345)] | length' 1
		done
	done
}

@test "a memory saver in front of us: paused and resumed, to the byte" {
	SHIM=$GUEST/hook_saver.so:$SHIM
	for way in "" paused; do
		rm -f "$work"/out.gmt
		HOOK_TELLS=1 traced "$GUEST/guest_saver" $way 2> "$work/error"
		grep -q 'saver hook used' "$work/error"
		report
		same live '.totals[0].current_bytes'
		is '.totals[0].peak_bytes' $((40 << 20))
		is '[.usage[] | [.kind, .allocations, .failures]]' '[["vmm",20,0]]'
		is .errors '[]'
	done
}

@test "run: a preload that is there stays in front" {
	LD_PRELOAD=$GUEST/hook_saver.so "$REPORT" run -q -o "$work/out.gmt" -- "$GUEST/guest_saver" | head -n 1 > "$work/said"
	report
	same live '.totals[0].current_bytes'
	is '[.usage[].kind]' '["vmm"]'
}

@test "a program with a dlsym of its own" {
	traced "$GUEST/guest_own_dlsym" "$PROGRAMS/plugin13.so"
	[ "$(jq .seen "$work/said")" -gt 0 ]
	report
	same live '.totals[0].current_bytes'
}

@test "RTLD_DEEPBIND: what goes by us is said, or seen all the same" {
	unset GPUMEMTRACE_QUIET
	traced "$GUEST/guest_own_dlsym" "$PROGRAMS/plugin13.so" deepbind 2> "$work/error"
	[ -e "$work/out.gmt" ] || grep -q 'GPUMEMTRACE_BACKEND=cupti' "$work/error"
}

@test "linked against libcuda and never calling it: nothing is said" {
	unset GPUMEMTRACE_QUIET
	LD_PRELOAD=$SHIM:$SIM/libcuda.so.1 true 2> "$work/error"
	[ ! -s "$work/error" ] && [ ! -e "$work/out.gmt" ]
}

@test "exceptions pass through hooked calls" {
	[ -x "$GUEST/guest_throw" ] || skip "no C++ compiler"
	SHIM=$SHIM:$GUEST/hook_throw.so traced "$GUEST/guest_throw" through
	report
	same live '.totals[0].current_bytes'
	same live_count '.totals[0].current_count'
}

@test "a longjmp over hooked calls, or inside them" {
	[ "$(uname -m)" = x86_64 ] || skip "jumps are told on x86-64 only"
	SHIM=$SHIM:$GUEST/hook_jump.so traced "$GUEST/guest_jump"
	[ "$(jq .jumps "$work/said")" = 100 ]
	report
	same live '.totals[0].current_bytes'
	same live_count '.totals[0].current_count'
	is '[.usage[] | [.kind, .allocations]]' '[["device",400]]'
}

with_allocator() {
	local library
	library=$(ls /usr/lib/*-linux-gnu/$1 2> /dev/null | head -n 1)
	[ -n "$library" ] || skip "$1 is not installed"
	for SHIM in "$library:$2" "$2:$library"; do
		rm -f "$work"/out.gmt
		traced "$PROGRAMS/runtime13_O2"
		report
		same live '.totals[0].current_bytes'
	done
	traced "$GUEST/guest_forks" record 10
}

@test "jemalloc, before and after" { with_allocator libjemalloc.so.2 "$SHIM"; }
@test "tcmalloc, before and after" { with_allocator libtcmalloc_minimal.so.4 "$SHIM"; }
@test "mimalloc, before and after" { with_allocator 'libmimalloc.so.[23]*' "$SHIM"; }

# with_sanitizer NAME: its library in front, as it must be
with_sanitizer() {
	local library shim=$SHIM
	library=$(gcc -print-file-name="$1")
	[ -e "$library" ] || skip "no $1 here"
	SHIM=$library:$shim
	ASAN_OPTIONS=detect_leaks=0 traced "$PROGRAMS/runtime13_O2"
	report
	same live '.totals[0].current_bytes'
	same peak '.totals[0].peak_bytes'
}

# both look up what they wrap before it can be called
@test "the address sanitizer in front" { with_sanitizer libasan.so; }
@test "the thread sanitizer in front" { with_sanitizer libtsan.so; }

@test "static programs and static-pie run as they do" {
	printf 'int main(void){return 42;}' > "$work/p.c"
	cc -static-pie -o "$work/pie" "$work/p.c" 2> /dev/null && cc -static -o "$work/static" "$work/p.c" 2> /dev/null ||
		skip "no static libc"
	for program in pie static; do
		run env LD_PRELOAD="$SHIM" "$work/$program"
		[ "$status" -eq 42 ] && [ -z "$output" ]
	done
}

@test "32-bit programs: the loader's refusal, the program runs" {
	printf 'int main(void){return 42;}' > "$work/p.c"
	cc -m32 -o "$work/p" "$work/p.c" 2> /dev/null || skip "no 32-bit compiler"
	run env LD_PRELOAD="$SHIM" "$work/p"
	[ "$status" -eq 42 ]
}

@test "musl programs: the loader's refusal, by name" {
	command -v musl-gcc > /dev/null || skip "musl-tools is not installed"
	printf 'int main(void){return 42;}' > "$work/p.c"
	musl-gcc -o "$work/p" "$work/p.c"
	run env LD_PRELOAD="$SHIM" "$work/p"
	[ "$status" -ne 139 ]
	[ "$status" -eq 42 ] || [[ $output == *symbol\ not\ found* ]]
	[ ! -e "$work/out.gmt" ]
}

@test "valgrind runs a traced program without an error" {
	command -v valgrind > /dev/null || skip "valgrind is not installed"
	valgrind -q --error-exitcode=99 --trace-children=no env true || skip "valgrind does not run here"
	LD_PRELOAD=$SHIM valgrind -q --error-exitcode=99 "$PROGRAMS/runtime13_O2" > "$work/said" 2> "$work/error" ||
		{ head -n 30 "$work/error"; return 1; }
	report
	same live '.totals[0].current_bytes'
}

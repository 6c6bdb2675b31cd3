#!/usr/bin/env bats
# Host programs of unusual kinds: each ends as it does alone, and its accounts are exact.

load ../helpers

# exact COMMAND...: it ends with 42, alone and traced, and the file has as many allocations as it says.
exact() {
	local status=0
	"$@" > "$work/alone" 2> "$work/error" || status=$?
	[ "$status" -eq 42 ] || skip "the program itself ends with $status here"
	status=0
	rm -f "$work"/out.gmt*
	traced timeout 100 "$@" 2> "$work/error" || status=$?
	[ "$status" -eq 42 ] || { echo "ended with $status: $(tail -n 3 "$work/error")"; return 1; }
	counted
}

# counted [FILE]: the file of a process that ended in order has the allocations that $work/said has.
counted() {
	"$REPORT" summary --json "${1:-$work/out.gmt}" > "$work/document"
	is .process.end "\"${END:-exit}\""
	is .file.dropped_events 0
	same allocations '[.usage[] | select(.kind == "device")] | map(.allocations) | add'
}

host() { exact "$HOSTILE/hosts" "$@"; }

@test "4,096 threads at once" { host threads; }
@test "the main thread leaves, another ends the process" { host leader; }
@test "200 threads are cancelled" { host cancel; }
@test "real-time priority, one processor" { host fifo; }
@test "coroutines of makecontext" { host contexts; }
@test "a stack of 8,000 frames" { host deep; }
@test "5,000 timer signals a second" { host storm; }
@test "the same, whose handler calls CUDA: what could not be recorded is counted" {
	# a handler that interrupts malloc and calls it again may end the program, with the shim or without
	traced timeout 100 "$HOSTILE/hosts" handler 2> "$work/ended" || [ $? -eq 42 ] ||
		{ grep -q 'Fatal glibc error: malloc' "$work/ended" && skip "the handler interrupted malloc"; }
	report
	is .process.end '"exit"'
	same allocations '[.usage[] | select(.kind == "device") | .allocations] | add'
	same interrupts '([.usage[].failures] | add) + .tracer.passed_calls'
}
@test "all signals blocked" { host blocked; }
@test "stopped and continued, 20 times" { host frozen; }
@test "attached to and detached from, 20 times" { host ptrace; }
@test "every descriptor closed again and again" { host closefrom; }
@test "neither dumpable nor to gain privileges" { host undumpable; }
@test "the time stamp counter is forbidden" { host tsc; }
@test "another user from now on" {
	chmod 711 "$work"
	host user
}
@test "three descriptors at most" { host nofile; }
@test "memory locked" { host mlock; }
@test "a file table and a working directory of its own" { host unshare; }
@test "20,000 mappings" { host mappings; }
@test "a library loaded and unloaded 300 times" { host plugins "$HOSTILE/names_plugin.so"; }
@test "calls in callbacks of dl_iterate_phdr, while others call dlclose" {
	mkdir "$work/sim" # without NVML, whose simulation loads and unloads a library in each query
	ln -s "$SIM"/libcuda* "$work/sim"
	LD_LIBRARY_PATH=$work/sim host iterate
}
@test "CUDA in a second namespace: that its calls are not seen is said, in the report or at exit" {
	host dlmopen "$HOSTILE/names_plugin.so"
	printf '%s\n' "$(getconf GNU_LIBC_VERSION)" 'glibc 2.34' | sort -VC && skip "the loader does not list its namespaces here"
	is .tracer.other_libcudas 1
	is '[.findings[] | select(.id == "coverage.namespace") | .severity]' '["warning"]'
	cat > "$work/host.py" <<-'PY'
		import ctypes, sys
		libc = ctypes.CDLL(None)
		libc.dlmopen.restype = libc.dlsym.restype = ctypes.c_void_p
		library = libc.dlmopen(ctypes.c_long(-1), sys.argv[1].encode(), 2)
		assert ctypes.CFUNCTYPE(ctypes.c_int)(libc.dlsym(ctypes.c_void_p(library), b"plugin_run"))() == 0
	PY
	unset GPUMEMTRACE_QUIET
	rm "$work/out.gmt"
	traced python3 "$work/host.py" "$HOSTILE/names_plugin.so" 2> "$work/error"
	[ ! -e "$work/out.gmt" ]
	grep -q '^gpumemtrace: libcuda was loaded in a linker namespace of its own (dlmopen)' "$work/error"
}
@test "in the background of a terminal that stops who writes to it" {
	cat > "$work/host.py" <<-'PY'
		import os, pty, sys, termios
		leader, terminal = pty.fork()
		if leader == 0:
		    modes = termios.tcgetattr(0)
		    modes[3] |= termios.TOSTOP
		    termios.tcsetattr(0, termios.TCSANOW, modes)
		    program = os.fork()
		    if program == 0:
		        os.setpgid(0, 0)
		        os.dup2(os.open(sys.argv[1], os.O_WRONLY), 1)
		        os.execve(sys.argv[2], sys.argv[2:4], dict(os.environ, LD_PRELOAD=sys.argv[4]))
		    status = os.waitpid(program, os.WUNTRACED)[1]
		    if os.WIFSTOPPED(status):
		        os.kill(program, 9)
		        os._exit(1)
		    os._exit(os.WEXITSTATUS(status))
		try:
		    while words := os.read(terminal, 1000):
		        sys.stderr.write(words.decode())
		except OSError:
		    pass
		sys.exit(os.WEXITSTATUS(os.waitpid(leader, 0)[1]))
	PY
	unset GPUMEMTRACE_QUIET
	: > "$work/said"
	run python3 "$work/host.py" "$work/said" "$HOSTILE/hosts" plain "$SHIM"
	[ "$status" -eq 42 ]
	[[ "$output" == *"gpumemtrace: written to "* ]] || { echo "$output"; false; }
	counted
}
@test "the environment is cleared" { host clearenv; }
@test "arithmetic whose exceptions are signals, sampled" {
	host floats
	GPUMEMTRACE_SAMPLE=64K traced "$HOSTILE/hosts" floats || [ $? -eq 42 ]
}
@test "100 children of fork and vfork, with a status each" { host children; }

@test "an environment of a megabyte, and arguments" {
	local i value=$(printf '%0100000d' 0)
	for i in $(seq 10); do export "HUGE_$i=$value"; done
	host plain $(seq 20000)
}
@test "an environment of 20,000 variables" {
	export $(seq -f 'V%.0f=x' 20000) # bats looks at each command: one is quicker than a loop
	host plain
}
@test "no environment but the shim's" {
	env -i LD_PRELOAD="$SHIM" LD_LIBRARY_PATH="$SIM" GPUMEMTRACE_OUT="$work/out.gmt" GPUMEMTRACE_QUIET=1 \
		"$HOSTILE/hosts" plain > "$work/said" || [ $? -eq 42 ]
	counted
}
@test "addresses not random, or of the old layout" {
	command -v setarch > /dev/null || skip "no setarch here"
	exact setarch -R "$HOSTILE/hosts" plain
	exact setarch -L "$HOSTILE/hosts" plain
	exact setarch -X "$HOSTILE/hosts" plain
}
@test "a stack without a limit, and of 128 KiB" {
	(ulimit -s unlimited; host plain)
	(ulimit -s 128; host plain)
}
@test "little address space" {
	(ulimit -v 2000000; "$REPORT" --version) || skip "the report tool does not run in it" # a sanitizer's shadow
	(ulimit -v 2000000; host plain)
}
@test "every library bound at once, and the loader's messages on" {
	LD_BIND_NOW=1 host plain
	LD_DEBUG=all LD_DEBUG_OUTPUT=$work/debug host plain
}
@test "strace attached" {
	command -v strace > /dev/null || skip "no strace here"
	exact strace -f -qq -o "$work/trace" "$HOSTILE/hosts" contexts
}
@test "gdb: a breakpoint in a call, stepping, and on" {
	command -v gdb > /dev/null || skip "no gdb here"
	gdb -q -batch -ex "set env LD_PRELOAD $SHIM" -ex "set env LD_LIBRARY_PATH $SIM" -ex 'set startup-with-shell off' \
		-ex 'set breakpoint pending on' -ex 'break cudaMalloc' -ex run -ex 'stepi 200' -ex 'bt 3' -ex 'delete' \
		-ex continue -ex 'printf "ended %d\n", $_exitcode' --args "$HOSTILE/hosts" plain > "$work/gdb" 2>&1 || true
	grep -q 'ended 42' "$work/gdb" || { tail -n 5 "$work/gdb"; return 1; }
	echo '{"allocations": 2000}' > "$work/said"
	counted
}

# ---- surroundings that a program makes for itself ----

around() { exact "$HOSTILE/surroundings" "$@"; }

# unfiled WAY: where no file may be longer than nothing, not even that of its output.
unfiled() {
	local statuses
	rm -f "$work"/out.gmt*
	LD_PRELOAD=$SHIM "$HOSTILE/surroundings" "$1" 2>&1 | cat > "$work/all"
	statuses=("${PIPESTATUS[@]}")
	[ "${statuses[0]}" -eq 42 ] || { echo "ended with ${statuses[0]}"; return 1; }
	grep allocations "$work/all" > "$work/said"
}

@test "no file may be written, from the start: recorded in memory, no SIGXFSZ" {
	unset GPUMEMTRACE_QUIET
	unfiled fsize
	grep -q 'recording in memory' "$work/all"
	[ ! -s "$work/out.gmt" ]
}
@test "no file may grow any more: the one that is there has all" {
	unfiled fsize-later
	counted
}
@test "no more address space, no more descriptors" {
	around as-later
	around nofile-later
}
@test "all memory locked from now on, with and without a limit" {
	chmod 777 "$work"
	around mlock
	around mlock-all
}
@test "a stack of 64 KiB, and threads of that size" {
	exact bash -c 'ulimit -s 64; exec "$0" threads' "$HOSTILE/surroundings"
}
@test "an empty root folder, after the first call" {
	chmod 777 "$work"
	around chroot
}
@test "no /proc" { around no-proc; }
@test "another root, from which the file cannot be reached" { around root; }
@test "every descriptor becomes a file of the program's, which stays empty" { around dup2; }
@test "system calls served by a handler of SIGSYS, as in sandboxes and emulators; one that ends the process" {
	around seccomp-trap
	around seccomp-exec
	GPUMEMTRACE_EVENTS=all around seccomp-trap
}
@test "the resolver of an indirect function calls CUDA, before the C library has started" {
	cd "$work"
	cat > host.c <<-'C'
		int cudaMalloc(void **memory, unsigned long bytes);
		int chosen(void) __attribute__((ifunc("resolve")));
		static int status(void) { return 42; }
		static void *resolve(void) { void *memory; return cudaMalloc(&memory, 512) ? 0 : status; }
		int main(void) { void *memory; return cudaMalloc(&memory, 512) ? 1 : chosen(); }
	C
	cc -w -o program host.c -L "$SIM" -l:libcudart.so.13
	run ./program
	[ "$status" -eq 42 ] || skip "the program itself ends with $status here"
	traced ./program || [ $? -eq 42 ]
}
@test "handlers of fork that were there before the shim's call CUDA, and do not wait" {
	command -v strace > /dev/null || skip "no strace here"
	cd "$work"
	cat > handlers.c <<-'C'
		#include <pthread.h>
		#include <stdlib.h>
		int cudaMalloc(void **memory, unsigned long bytes);
		long allocations;
		void allocate(void) { void *memory; if (cudaMalloc(&memory, 512)) exit(1); allocations++; }
		__attribute__((constructor)) static void before(void) { pthread_atfork(allocate, allocate, 0); }
	C
	cat > host.c <<-'C'
		#include <stdio.h>
		#include <sys/wait.h>
		#include <unistd.h>
		extern long allocations;
		extern void allocate(void);
		int main(void) {
			allocate();
			for (int i = 0; i < 5; i++) { if (!fork()) _exit(0); wait(0); }
			printf("{\"allocations\": %ld}\n", allocations);
			return 42;
		}
	C
	cc -w -shared -fPIC -o libhandlers.so handlers.c -L "$SIM" -l:libcudart.so.13
	cc -w -o program host.c -L. -lhandlers -Wl,-rpath,"$work" -Wl,-rpath-link,"$SIM"
	run strace -qq -e trace=nanosleep,clock_nanosleep -o calls -E LD_PRELOAD="$SHIM" ./program
	[ "$status" -eq 42 ]
	echo "$output" > said
	counted
	! grep -q nanosleep calls
}
@test "destructors of threads that call CUDA, four times each" { around keys; }
@test "200 timers with a thread each" { around timers; }
@test "user, mount and process namespaces of its own" {
	unshare -Urmpf --mount-proc true 2> /dev/null || skip "no namespaces here"
	exact unshare -Urmpf --mount-proc "$HOSTILE/surroundings" plain
}
@test "posix_spawn and vfork in four threads" { around spawn; }
@test "the program's text moved away and a copy in its place" { around text; }
@test "callers written by hand: no unwind tables, a frame pointer to nowhere" { around assembly; }
@test "a handler on a stack of its own before a guard page" { around sigaltstack; }
@test "400 children that record and end at the same time: each finishes its file" {
	around forks
	[ ! -s "$work/error" ] || sed 's/^/# /' "$work/error" >&3 # to be seen, whatever it is
	[ "$(find "$work" -name 'out.gmt*' -size -4M | wc -l)" -eq 401 ]
}
@test "every mapping sealed after the first calls" { around sealed; }
@test "a program whose own headers cannot be read" { LD_BIND_NOW=1 around hidden; }
@test "arguments in memory that a handler of SIGSEGV makes accessible" { around guarded; }
@test "coroutines that go from thread to thread" { around fibers; }
@test "tunables of glibc" {
	GLIBC_TUNABLES=glibc.malloc.perturb=165:glibc.malloc.arena_max=1:glibc.pthread.rseq=0:glibc.rtld.optional_static_tls=0 \
		around threads
}

# ---- language runtimes, of which each has stacks and signals of its own ----

# needs COMMAND: skips where it is missing.
needs() { command -v "$1" > /dev/null || skip "no $1 here"; }

# runtime NUMBER COMMAND...: the program of another language makes so many allocations.
runtime() {
	local status=0 number=$1
	shift
	traced timeout 120 "$@" 2> "$work/error" || status=$?
	[ "$status" -eq 42 ] || { echo "ended with $status: $(tail -n 5 "$work/error")"; return 1; }
	echo "{\"allocations\": $number}" > "$work/said"
	counted
}

@test "Go with cgo: 64 goroutines, preempted by signals" {
	needs go
	cd "$work"
	cat > main.go <<-'GO'
		package main
		/*
		#cgo LDFLAGS: -L${SRCDIR} -l:libcudart.so.13
		int cudaMalloc(void **memory, unsigned long bytes);
		int cudaFree(void *memory);
		extern void goCalled(void);
		static int both(void) { void *memory; goCalled(); return cudaMalloc(&memory, 512) || cudaFree(memory); }
		*/
		import "C"
		import ("os"; "runtime"; "sync")
		//export goCalled
		func goCalled() { runtime.Gosched() }
		func main() {
			var all sync.WaitGroup
			for i := 0; i < 64; i++ {
				all.Add(1)
				go func() { defer all.Done(); for k := 0; k < 50; k++ { if C.both() != 0 { os.Exit(1) }; runtime.GC() } }()
			}
			all.Wait()
			os.Exit(42)
		}
	GO
	ln -s "$SIM/libcudart.so.13" .
	GOFLAGS=-mod=mod GO111MODULE=off GOCACHE=$work/cache LD_PRELOAD= go build -o program main.go
	# Go ends by a system call of its own, which no library sees
	END=killed runtime 3200 ./program
}
@test "Rust: threads that panic and unwind, an async executor" {
	needs rustc
	cd "$work"
	cat > main.rs <<-'RS'
		use std::future::Future; use std::pin::Pin; use std::task::{Context, Poll, RawWaker, RawWakerVTable, Waker};
		extern "C" { fn cudaMalloc(memory: *mut *mut u8, bytes: usize) -> i32; fn cudaFree(memory: *mut u8) -> i32; }
		struct Block(*mut u8);
		impl Block { fn new() -> Block { let mut memory = std::ptr::null_mut(); unsafe { assert_eq!(cudaMalloc(&mut memory, 512), 0) }; Block(memory) } }
		impl Drop for Block { fn drop(&mut self) { unsafe { cudaFree(self.0); } } }
		struct Later(bool);
		impl Future for Later { type Output = (); fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
			if self.0 { Poll::Ready(()) } else { self.0 = true; Poll::Pending } } }
		async fn work() { for _ in 0..50 { let _block = Block::new(); Later(false).await; } }
		fn raw() -> RawWaker { fn nothing(_: *const ()) {} fn again(_: *const ()) -> RawWaker { raw() }
			static TABLE: RawWakerVTable = RawWakerVTable::new(again, nothing, nothing, nothing); RawWaker::new(std::ptr::null(), &TABLE) }
		fn main() {
			std::panic::set_hook(Box::new(|_| {}));
			let threads: Vec<_> = (0..16).map(|_| std::thread::spawn(|| { let _block = Block::new(); panic!("unwinds") })).collect();
			for thread in threads { assert!(thread.join().is_err()); }
			let waker = unsafe { Waker::from_raw(raw()) }; let mut context = Context::from_waker(&waker);
			let mut tasks: Vec<Pin<Box<dyn Future<Output = ()>>>> = (0..16).map(|_| Box::pin(work()) as _).collect();
			while !tasks.is_empty() { tasks.retain_mut(|task| task.as_mut().poll(&mut context).is_pending()); }
			std::process::exit(42);
		}
	RS
	rustc --edition 2018 -O -o program main.rs -C link-arg=-L"$SIM" -C link-arg=-l:libcudart.so.13 2> "$work/error"
	runtime 816 ./program
}
@test "JVM with JNI: threads, exceptions, garbage collections" {
	needs javac
	cd "$work"
	cat > Host.java <<-'JAVA'
		public class Host {
			static native int both();
			public static void main(String[] words) throws Exception {
				System.load(words[0]);
				Thread[] threads = new Thread[16];
				for (int i = 0; i < threads.length; i++) {
					threads[i] = new Thread(() -> {
						for (int k = 0; k < 100; k++) {
							if (both() != 0) Runtime.getRuntime().halt(1);
							try { Object none = k < 0 ? words : null; none.hashCode(); } catch (NullPointerException e) { }
							byte[] garbage = new byte[100000];
						}
						System.gc();
					});
					threads[i].start();
				}
				for (Thread thread : threads) thread.join();
				System.exit(42);
			}
		}
	JAVA
	cat > host.c <<-'C'
		int cudaMalloc(void **memory, unsigned long bytes);
		int cudaFree(void *memory);
		int Java_Host_both(void *environment, void *class);
		int Java_Host_both(void *environment, void *class) { void *memory; return !environment || !class || cudaMalloc(&memory, 512) || cudaFree(memory); }
	C
	cc -shared -fPIC -o libhost.so host.c -L "$SIM" -l:libcudart.so.13
	javac Host.java
	runtime 1600 java -cp . Host "$work/libhost.so"
}
@test "Node: an add-on in the main thread and in workers" {
	needs node
	local include
	for include in /usr/include/node /usr/include/nodejs/src; do [ -e $include/node_api.h ] && break; done
	[ -e $include/node_api.h ] || skip "no headers of Node here"
	cd "$work"
	cat > addon.c <<-'C'
		#include <node_api.h>
		int cudaMalloc(void **memory, unsigned long bytes);
		int cudaFree(void *memory);
		static napi_value both(napi_env env, napi_callback_info info)
		{ void *memory; napi_value result; napi_create_int32(env, !info || cudaMalloc(&memory, 512) || cudaFree(memory), &result); return result; }
		NAPI_MODULE_INIT() { napi_value function; napi_create_function(env, "both", NAPI_AUTO_LENGTH, both, NULL, &function);
			napi_set_named_property(env, exports, "both", function); return exports; }
	C
	cat > host.js <<-'JS'
		const {Worker, isMainThread} = require("worker_threads"), addon = require("./addon.node");
		for (let i = 0; i < 200; i++) if (addon.both()) process.exit(1);
		if (isMainThread) {
			let left = 4;
			for (let i = 0; i < 4; i++) new Worker(__filename).on("exit", () => { if (--left == 0) process.exit(42); });
		}
	JS
	cc -shared -fPIC -I$include -DNODE_GYP_MODULE_NAME=addon -o addon.node addon.c -L "$SIM" -l:libcudart.so.13
	runtime 1000 node host.js
}
@test "Python: threads, asyncio, callbacks, a recursion to its limit" {
	cat > "$work/host.py" <<-'PY'
		import asyncio, ctypes, os, sys, threading
		cuda = ctypes.CDLL("libcudart.so.13")
		def both(number=1):
		    for _ in range(number):
		        memory = ctypes.c_void_p()
		        assert cuda.cudaMalloc(ctypes.byref(memory), ctypes.c_size_t(512)) == 0 and cuda.cudaFree(memory) == 0
		called = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(lambda a, b: both() or 0)
		ctypes.CDLL(None).qsort(ctypes.create_string_buffer(2), ctypes.c_size_t(2), ctypes.c_size_t(1), called)
		def down():
		    try:
		        down()
		    except RecursionError:
		        pass
		down()
		async def task():
		    for _ in range(20):
		        both()
		        await asyncio.sleep(0)
		async def tasks():
		    await asyncio.gather(*(task() for _ in range(20)))
		asyncio.run(tasks())
		threads = [threading.Thread(target=both, args=(100,)) for _ in range(8)]
		[t.start() for t in threads]
		[t.join() for t in threads]
		sys.exit(42)
	PY
	runtime 1201 python3 "$work/host.py"
}
@test "LuaJIT: compiled code without unwind tables" {
	needs luajit
	cat > "$work/host.lua" <<-'LUA'
		local ffi = require("ffi")
		ffi.cdef("int cudaMalloc(void **memory, size_t bytes); int cudaFree(void *memory); void exit(int);")
		local cuda, memory = ffi.load("libcudart.so.13"), ffi.new("void *[1]")
		local function both() assert(cuda.cudaMalloc(memory, 512) == 0 and cuda.cudaFree(memory[0]) == 0) end
		for i = 1, 500 do both() end
		local co = coroutine.wrap(function() for i = 1, 500 do both() coroutine.yield() end end)
		for i = 1, 500 do co() end
		os.exit(42)
	LUA
	runtime 1000 luajit "$work/host.lua"
}
@test "Ruby: fibers and threads" {
	needs ruby
	cat > "$work/host.rb" <<-'RB'
		require "fiddle"
		cuda = Fiddle.dlopen("libcudart.so.13")
		$malloc = Fiddle::Function.new(cuda["cudaMalloc"], [Fiddle::TYPE_VOIDP, Fiddle::TYPE_SIZE_T], Fiddle::TYPE_INT)
		$free = Fiddle::Function.new(cuda["cudaFree"], [Fiddle::TYPE_VOIDP], Fiddle::TYPE_INT)
		def both
		  memory = Fiddle::Pointer.malloc(8)
		  exit 1 unless $malloc.call(memory, 512) == 0 && $free.call(memory.ptr) == 0
		end
		fibers = (1..20).map { Fiber.new { 20.times { both; Fiber.yield } } }
		20.times { fibers.each(&:resume) }
		(1..8).map { Thread.new { 50.times { both; GC.start } } }.each(&:join)
		exit 42
	RB
	runtime 800 ruby "$work/host.rb"
}
@test "PHP: its FFI" {
	needs php
	php -r 'exit(extension_loaded("FFI") ? 0 : 1);' || skip "PHP has no FFI here"
	cat > "$work/host.php" <<-'PHP'
		<?php
		$cuda = FFI::cdef("int cudaMalloc(void **memory, size_t bytes); int cudaFree(void *memory);", "libcudart.so.13");
		for ($i = 0; $i < 500; $i++) {
			$memory = $cuda->new("void *");
			if ($cuda->cudaMalloc(FFI::addr($memory), 512) || $cuda->cudaFree($memory)) exit(1);
		}
		exit(42);
	PHP
	# its FFI opens libraries with RTLD_DEEPBIND, by which their calls go by a preload: that is said
	unset GPUMEMTRACE_QUIET
	traced php -d ffi.enable=1 "$work/host.php" 2> "$work/error" || [ $? -eq 42 ]
	[ -e "$work/out.gmt" ] || grep -q 'GPUMEMTRACE_BACKEND=cupti' "$work/error"
}
@test "Guile: continuations" {
	needs guile
	cat > "$work/host.scm" <<-'SCM'
		(use-modules (system foreign))
		(define cuda (dynamic-link (string-append (getenv "SIM") "/libcudart.so.13")))
		(define malloc (pointer->procedure int (dynamic-func "cudaMalloc" cuda) (list '* size_t)))
		(define free (pointer->procedure int (dynamic-func "cudaFree" cuda) (list '*)))
		(define (both) (let ((memory (bytevector->pointer (make-bytevector 8 0))))
		  (unless (and (= 0 (malloc memory 512)) (= 0 (free (dereference-pointer memory)))) (primitive-exit 1))))
		(use-modules (rnrs bytevectors))
		(do ((i 0 (+ i 1))) ((= i 300)) (call/cc (lambda (k) (both) (k #t))) (if (= 0 (modulo i 50)) (gc)))
		(primitive-exit 42)
	SCM
	SIM=$SIM GUILE_AUTO_COMPILE=0 runtime 300 guile -s "$work/host.scm"
}
@test "SBCL: its own signals and garbage collector" {
	needs sbcl
	cat > "$work/host.lisp" <<-'LISP'
		(load-shared-object "libcudart.so.13")
		(define-alien-routine ("cudaMalloc" cuda-malloc) int (memory (* (* t))) (bytes size-t))
		(define-alien-routine ("cudaFree" cuda-free) int (memory (* t)))
		(dotimes (i 300)
		  (with-alien ((memory (* t)))
		    (unless (and (= 0 (cuda-malloc (addr memory) 512)) (= 0 (cuda-free memory))) (exit :code 1 :abort t)))
		  (when (= 0 (mod i 50)) (gc :full t)))
		(exit :code 42)
	LISP
	runtime 300 sbcl --script "$work/host.lisp"
}
@test "Fortran, and Ada's tasks" {
	needs gfortran
	cd "$work"
	cat > host.f90 <<-'F'
		program host
		  use iso_c_binding
		  interface
		    integer(c_int) function cuda_malloc(memory, bytes) bind(c, name="cudaMalloc")
		      import
		      type(c_ptr) :: memory
		      integer(c_size_t), value :: bytes
		    end function
		  end interface
		  type(c_ptr) :: memory
		  integer :: i
		  do i = 1, 200
		    if (cuda_malloc(memory, 512_c_size_t) /= 0) stop 1
		  end do
		  stop 42
		end program
	F
	gfortran -o program host.f90 -L "$SIM" -l:libcudart.so.13
	runtime 200 ./program
	command -v gnatmake > /dev/null || return 0
	cat > tasks.adb <<-'ADA'
		with Interfaces.C; with System; with GNAT.OS_Lib;
		procedure Tasks is
		   use type Interfaces.C.int;
		   function Cuda_Malloc (Memory : System.Address; Bytes : Interfaces.C.size_t) return Interfaces.C.int;
		   pragma Import (C, Cuda_Malloc, "cudaMalloc");
		begin
		   declare
		      task type Worker;
		      task body Worker is
		         Memory : System.Address;
		      begin
		         for I in 1 .. 50 loop
		            if Cuda_Malloc (Memory'Address, 512) /= 0 then GNAT.OS_Lib.OS_Exit (1); end if;
		         end loop;
		      end Worker;
		      All_Of_Them : array (1 .. 8) of Worker;
		   begin
		      null;
		   end;
		   GNAT.OS_Lib.OS_Exit (42);
		end Tasks;
	ADA
	gnatmake -q tasks.adb -largs -L"$SIM" -l:libcudart.so.13 2> "$work/error" || return 0
	rm -f out.gmt*
	runtime 400 ./tasks
}
@test "D: fibers, which have 16 KiB of stack" {
	needs gdc
	cd "$work"
	cat > host.d <<-'D'
		import core.thread, core.stdc.stdlib, core.memory;
		extern (C) int cudaMalloc(void** memory, size_t bytes);
		extern (C) int cudaFree(void* memory);
		void work() {
			foreach (i; 0 .. 50) {
				void* memory;
				if (cudaMalloc(&memory, 512) || cudaFree(memory)) exit(1);
				if (i % 10 == 0) GC.collect();
				Fiber.yield();
			}
		}
		void main() {
			Thread[] threads;
			foreach (i; 0 .. 8) {
				auto thread = new Thread({
					Fiber[4] fibers;
					bool any = true;
					foreach (ref fiber; fibers) fiber = new Fiber(&work);
					while (any) {
						any = false;
						foreach (fiber; fibers) if (fiber.state != Fiber.State.TERM) { fiber.call(); any = true; }
					}
				});
				thread.start();
				threads ~= thread;
			}
			foreach (thread; threads) thread.join();
			exit(42);
		}
	D
	gdc -o program host.d -L"$SIM" -l:libcudart.so.13
	runtime 1600 ./program
}
@test "Erlang: functions in C on its schedulers, usual and dirty" {
	needs erlc
	local include
	for include in /usr/lib/erlang/usr/include /usr/lib/erlang/erts-*/include; do [ -e "$include/erl_nif.h" ] && break; done
	[ -e "$include/erl_nif.h" ] || skip "no headers of Erlang here"
	cd "$work"
	cat > host_nif.c <<-'C'
		#include <erl_nif.h>
		int cudaMalloc(void **memory, unsigned long bytes);
		int cudaFree(void *memory);
		static ERL_NIF_TERM both(ErlNifEnv *env, int count, const ERL_NIF_TERM words[])
		{ void *memory; return enif_make_int(env, count || !words || cudaMalloc(&memory, 512) || cudaFree(memory)); }
		static ErlNifFunc functions[] = {{"dirty", 0, both, ERL_NIF_DIRTY_JOB_CPU_BOUND}, {"usual", 0, both, 0}};
		ERL_NIF_INIT(host, functions, NULL, NULL, NULL, NULL)
	C
	cat > host.erl <<-'ERL'
		-module(host).
		-export([load/0, dirty/0, usual/0, main/0]).
		-on_load(load/0).
		load() -> erlang:load_nif("./host_nif", 0).
		dirty() -> erlang:nif_error(none).
		usual() -> erlang:nif_error(none).
		work(Parent) ->
			[0 = F() || _ <- lists:seq(1, 25), F <- [fun dirty/0, fun usual/0]],
			erlang:garbage_collect(),
			Parent ! done.
		main() ->
			Self = self(),
			[spawn(fun() -> work(Self) end) || _ <- lists:seq(1, 32)],
			[receive done -> ok end || _ <- lists:seq(1, 32)],
			halt(42).
	ERL
	cc -shared -fPIC -I"$include" -o host_nif.so host_nif.c -L "$SIM" -l:libcudart.so.13
	erlc host.erl
	runtime 1600 erl -noshell -s host main
}

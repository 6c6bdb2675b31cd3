#!/usr/bin/env bats
# Gates that measured nothing are not green: what `run` finds of a program and its descendants, what it says
# of programs that cannot be traced, and gates of files that have nothing, or not all, to measure.

load helpers

# takes FILE: a Python program that takes 3 MiB and ends.
takes() {
	cat > "$1" <<-'END'
		import ctypes
		cuda = ctypes.CDLL("libcudart.so.13")
		cuda.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(3 << 20))
	END
}

setup() {
	work=$(mktemp -d)
	cd "$work"
	export LD_LIBRARY_PATH=$SIM GPUMEMTRACE_QUIET=1
	takes rank.py
}

# ends STATUS ARG...: the command of the tool ends so; its output is in $work/said and $work/error.
ends() {
	local status=0
	"$REPORT" "${@:2}" > said 2> error || status=$?
	[ $status = "$1" ] || { echo "ended with $status: $(cat said error)"; return 1; }
}

launchers() {
	cat > launcher.py <<-'END'
		import os, subprocess, sys
		ranks = [subprocess.Popen([sys.executable, "rank.py"], env={**os.environ, "RANK": str(rank)}) for rank in (0, 1)]
		sys.exit(max(rank.wait() for rank in ranks))
	END
	printf '#!/bin/sh\npython3 launcher.py\n' > train.sh
	chmod +x train.sh
}

@test "a script that starts a launcher that starts ranks: the ranks are judged" {
	launchers
	LD_PRELOAD=$SHIM python3 rank.py # of no run
	ends 1 run --json --check "--leaks exit" -- ./train.sh
	mv said document
	is '[.runs[].process.rank]' '[0,1]'
	is '[.gates[] | [.gate, .passed, .value]]' '[["no-oom",true,0],["leaks",false,3145728]]'
	! grep -q 'no CUDA call' error
	ends 1 run -o 'all-%r.gmt' --check "--leaks exit" -- make -f /dev/stdin <<-'END'
		all: ; @./train.sh
	END
	[ -e all-0.gmt ] && [ -e all-1.gmt ]
}

@test "one name for all: what was moved away during the run belongs to it, what was there before does not" {
	LD_PRELOAD=$SHIM GPUMEMTRACE_OUT=one.gmt python3 rank.py
	ends 1 run --json -o one.gmt --check "--leaks exit" -- sh -c 'python3 rank.py; python3 rank.py; true'
	mv said document
	is '.runs | length' 2
	[ -e one.gmt.old1 ] && [ -e one.gmt.old2 ]
}

@test "a run within a run belongs to both" {
	ends 1 run --json --check "--leaks exit" -- sh -c "'$REPORT' run -q -- python3 rank.py > inner; python3 rank.py"
	grep -q '^Peak: 3.00 MiB' inner
	mv said document
	is '.runs | length' 2
}

@test "no CUDA call is no passed gate" {
	ends 3 run --check "--junit junit.xml --sarif gates.sarif" -- true
	grep -q 'no-oom .*not measured: the program made no CUDA call' said
	grep -q '0 of 2 gates passed, 2 not measured' said
	python3 - <<-'END'
		import json, xml.etree.ElementTree as tree
		suite = tree.parse("junit.xml").getroot().find("testsuite")
		assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("2", "0", "2")
		assert all(case.find("error").get("type") == "not-measured" for case in suite)
		results = json.load(open("gates.sarif"))["runs"][0]["results"]
		assert [(r["ruleId"], r["kind"], r["level"]) for r in results] == [("no-oom", "open", "none"), ("leaks", "open", "none")]
	END
	ends 0 run --json --check "--allow-unmeasured --junit junit.xml" -- true
	mv said document
	is '[.gates[] | [.passed, .value]]' '[[null,null],[null,null]]'
	grep -q '<skipped message="not measured: the program made no CUDA call' junit.xml
	ends 0 run -- true
	ends 5 run --check "" -- sh -c 'exit 5'
}

@test "programs that cannot be traced are told before they start, and why" {
	printf 'int main(void) { return 0; }\n' > none.c
	cc none.c -o dynamic || skip "no C compiler"
	if cc -static none.c -o static; then
		ends 3 run --check "" -- ./static
		grep -q './static is linked statically' error
		printf '#! /usr/bin/env -S A=1 ./static -x\n' > script
		chmod +x script
		ends 3 run --check "" -- ./script
		grep -q 'leaks .*not measured: ./static is linked statically' said
	fi
	python3 - <<-'END'
		data = bytearray(open("dynamic", "rb").read())
		other = data.copy()
		other[4] = 1 # ELFCLASS32
		open("narrow", "wb").write(other)
		other = data.copy()
		other[18] ^= 0x40 # e_machine
		open("foreign", "wb").write(other)
		at = data.index(b"/lib64/ld-linux")
		data[at:at + 16] = b"/lib/ld-musl-x\0\0"
		open("musl", "wb").write(data)
	END
	chmod +x narrow foreign musl
	"$REPORT" run -- ./narrow 2>&1 | grep -q './narrow is a 32-bit program'
	"$REPORT" run -- ./foreign 2>&1 | grep -q './foreign is built for another processor'
	"$REPORT" run -- ./musl 2>&1 | grep -q './musl is linked against musl'
	if command -v musl-gcc > /dev/null; then
		# with the preload its loader would end it
		musl-gcc none.c -o musl
		ends 0 run -- ./musl
		ends 3 run --check "" -- ./musl
		grep -q 'leaks .*not measured: ./musl is linked against musl' said
	fi
	if [ "$(id -u)" = 0 ]; then
		chown 65534 dynamic
		chmod 4755 dynamic
		"$REPORT" run -- ./dynamic 2>&1 | grep -q './dynamic has privileges of its own'
	fi
}

@test "a file that cannot be written is no passed gate" {
	ends 3 run -o rank.py/out.gmt --check "" -- python3 rank.py
	grep -q "the tracer's file cannot be written: $work/rank.py is not a directory" error
	grep -q 'leaks .*not measured: no file could be written' said
	ends 3 run -o /proc/none/out.gmt --check "" -- python3 rank.py
}

@test "without a GPU no gate passes" {
	GPUSIM_DEVICES=0 ends 3 run --check "" -- python3 rank.py
	grep -q '0 of 2 gates passed, 2 not measured' said
	grep -q 'no-oom .*not measured: no GPU was used' said
}

@test "a device that nobody used passes no gate; one that only another rank used does" {
	export GPUSIM_DEVICES=2
	LD_PRELOAD=$SHIM GPUMEMTRACE_OUT=one.gmt python3 rank.py
	sed 's/cuda.cudaMalloc/cuda.cudaSetDevice(1); &/' rank.py > other.py
	LD_PRELOAD=$SHIM GPUMEMTRACE_OUT=other.gmt python3 other.py
	ends 3 check --leaks off --device 1 one.gmt
	grep -q 'no-oom .*not measured: device 1 was not used' said
	ends 0 check --leaks off --device 1 --allow-unmeasured one.gmt
	ends 0 check --leaks off --device 1 one.gmt other.gmt
	ends 3 check --leaks off --device 2 one.gmt other.gmt
}

@test "totals stay exact where allocations found no room in the file, so their gates are measured" {
	cat > many.py <<-'END'
		import ctypes
		cuda = ctypes.CDLL("libcudart.so.13")
		cuda.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(8 << 20))
		for _ in range(30000):
		    cuda.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(512))
	END
	ends 0 run -q -o many.gmt --check "--leaks off --max-peak 1GiB" -- env GPUMEMTRACE_MAX_FILE=1MiB python3 many.py
	grep -q '^  *incomplete file: .* records were dropped' said
	"$REPORT" summary --json many.gmt > document
	is .file.totals_exact true
	is '.totals[0].peak_bytes' $(((8 << 20) + 30000 * 512))
	ends 5 check --leaks off --max-peak 1MiB many.gmt
	ends 1 check --leaks exit many.gmt
}

@test "growth is not measured where the file lacks records of what is live" {
	cat > many.py <<-'END'
		import ctypes
		cuda = ctypes.CDLL("libcudart.so.13")
		for _ in range(30000):
		    work = ctypes.c_void_p()
		    cuda.cudaMalloc(ctypes.byref(work), ctypes.c_size_t(1 << 20))
		    cuda.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(512))
		    cuda.cudaFree(work)
	END
	ends 3 run -q -o many.gmt --check "--leaks grow" -- env GPUMEMTRACE_MAX_FILE=1MiB python3 many.py
	grep -q 'leaks .*not measured: .* records were dropped' said
	ends 1 run -q -o many.gmt --check "--leaks grow" -- python3 many.py
}

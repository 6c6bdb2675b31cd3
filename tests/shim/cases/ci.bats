#!/usr/bin/env bats
# The examples of examples/ci, run as they are written: the jobs' own commands, make, CTest and meson.

load ../helpers

prepare() {
	cp -r "$SOURCE/examples/ci/." "$work/ci"
	cd "$work/ci"
	mkdir bin
	ln -s "$REPORT" bin/gpumem-report
	export PATH=$work/ci/bin:$PATH
	export CUDA_LIBS="$SIM/libcudart.so.13" CPPFLAGS="-I$SOURCE/include"
	unset GPUMEMTRACE_OUT
}

# job FILE: the commands of a job, a line each, joined to one script that stops at the first failure.
job() {
	/usr/bin/python3 - "$1" <<-'END'
		import sys
		lines, inside, indent = open(sys.argv[1]).read().splitlines(), False, 0
		for line in lines:
		    text, depth = line.strip(), len(line) - len(line.lstrip())
		    if inside and text and depth <= indent:
		        inside = False
		    if text.startswith("run:"):
		        inside, indent = text == "run: |", depth
		        if text != "run: |":
		            print(text[5:])
		    elif text == "script:":
		        inside, indent = True, depth
		    elif inside and text:
		        print(text[2:] if text.startswith("- ") else text)
	END
}

@test "GitHub Actions: the job's commands pass, and fail on the leak" {
	prepare
	export GITHUB_STEP_SUMMARY=$work/summary
	job github-actions.yml > job.sh
	[ "$(wc -l < job.sh)" -eq 3 ]
	bash -e job.sh
	grep -q '^## GPU memory: 3 of 3 gates passed$' "$work/summary"
	[ -s gpu-memory.sarif ] && [ -s gpu-memory.xml ]
	rm gpu-memory.gmt
	sed -i 's,-- ./train,-- ./train leaky,' job.sh
	run bash -e job.sh
	[ "$status" -eq 1 ]
	[[ $output == *"::error title=GPU memory leaks.,file=project/train.c,line="* ]]
	grep -q '^## GPU memory: 1 of 3 gates failed$' "$work/summary"
	grep -q '<summary><b>project/train.c:[0-9]*</b> ' "$work/summary"
	grep -q '"ruleId": *"leaks"' gpu-memory.sarif
	grep -q 'train.c' gpu-memory.sarif
}

@test "GitLab: the same" {
	prepare
	job gitlab-ci.yml > job.sh
	[ "$(wc -l < job.sh)" -eq 3 ]
	bash -e job.sh
	rm gpu-memory.gmt
	sed -i 's,-- ./train,-- ./train leaky,' job.sh
	run bash -e job.sh
	[ "$status" -eq 1 ]
	[ "$(jq -c '.[].location.path' gpu-memory.json)" = '"project/train.c"' ]
}

@test "make check-gpu-memory" {
	prepare
	make check-gpu-memory
	[ -s gpu-memory.xml ]
	run make check-gpu-memory ARGS=leaky
	[ "$status" -ne 0 ]
	[[ $output == *"Error 1"* ]]
}

@test "CTest" {
	command -v ctest > /dev/null || skip "no CMake here"
	prepare
	cmake -S . -B cmake -DGPUMEM_REPORT="$REPORT" -DCUDA_LIBRARY="$SIM/libcudart.so.13" \
		-DGPUMEMTRACE_INCLUDE="$SOURCE/include" > "$work/log"
	cmake --build cmake > "$work/log"
	ctest --test-dir cmake --output-on-failure > "$work/log"
	grep -q '100% tests passed' "$work/log"
	[ -s cmake/train_leaks.gmt ]
}

@test "meson test --setup gpumem" {
	prepare
	MALLOC_PERTURB_=0 meson setup build -Dcudart_dir="$SIM" -Dgpumem_report="$REPORT" \
		-Dgpumemtrace_include="$SOURCE/include" > "$work/log"
	meson test -C build > "$work/log" # without the setup nobody looks at memory
	meson test -C build --setup gpumem --no-suite leaky > "$work/log"
	run meson test -C build --setup gpumem --suite leaky
	[ "$status" -eq 1 ]
	[ "$(find build -name '*.gmt' | wc -l)" -eq 2 ]
}

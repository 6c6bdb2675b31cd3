#!/usr/bin/env bats
# When CUPTI cannot be used: a sentence, the wrappers go on, the other tool keeps its subscription.

load helpers

# falls_back SENTENCE: the device family is recorded by the wrappers, and the sentence is said once.
falls_back() {
	seen cupti "$PROGRAMS/families_sim13" device
	cat "$work/error"
	[ "$(wc -l < "$work/error")" -eq 1 ]
	grep -qF "gpumemtrace: CUPTI is not used: $1" "$work/error"
	grep -qF "recording by LD_PRELOAD" "$work/error"
	is cupti .backend '"preload"'
	is cupti .cupti false
	seen preload "$PROGRAMS/families_sim13" device
	alike preload cupti
}

@test "another subscriber: its name is said" {
	FAKE_CUPTI_HOLDER="CUPTI for Kineto" falls_back "it has room for one subscriber, and CUPTI for Kineto is it"
}

@test "another subscriber that CUPTI does not name" {
	rm "$work/lib/libcupti.so.13"
	ln -s "$TRACED/libcupti.so.11.8" "$work/lib/libcupti.so.13"
	FAKE_CUPTI_HOLDER=x falls_back "it has room for one subscriber, and another tool (torch.profiler"
}

@test "an injected tool is named" {
	rm "$work/lib/libcupti.so.13"
	ln -s "$TRACED/libcupti.so.11.8" "$work/lib/libcupti.so.13"
	ln -s "$TRACED/libinjected.so" "$work/libtool.so"
	export CUDA_INJECTION64_PATH=$work/libtool.so
	FAKE_CUPTI_HOLDER=x falls_back "it has room for one subscriber, and another tool ($work/libtool.so?)"
}

@test "an injected tool that subscribes in cuInit comes first" {
	ln -s "$TRACED/libsubscriber.so" "$work/libtool.so"
	CUDA_INJECTION64_PATH=$work/libtool.so falls_back \
		"it has room for one subscriber, and CUPTI for another tool is it"
}

@test "older than CUDA 11.8, newer than 13" {
	FAKE_CUPTI_VERSION=17 falls_back "$work/lib/libcupti.so.13 has API version 17"
	FAKE_CUPTI_VERSION=140000 falls_back "$work/lib/libcupti.so.13 has API version 140000"
}

@test "CUDA 11.8 to 13: used, whatever the number" {
	for version in 18 24 28 130000 130002 139999; do
		FAKE_CUPTI_VERSION=$version seen cupti "$PROGRAMS/families_sim13" device
		is cupti .backend '"cupti"'
	done
}

@test "a libcupti whose subscription has other parameters: subscribed in the older way" {
	FAKE_CUPTI_SIZE=48 seen cupti "$PROGRAMS/families_sim13" device
	[ ! -s "$work/error" ]
	is cupti .backend '"cupti"'
	FAKE_CUPTI_SIZE=48 FAKE_CUPTI_HOLDER=x falls_back \
		"it has room for one subscriber, and another tool (torch.profiler"
}

@test "CUPTI refuses with an error: its words are said" {
	FAKE_CUPTI_ERROR=35 falls_back "$work/lib/libcupti.so.13 says CUPTI_ERROR_NUMBER_35 (35)"
}

@test "a libcupti that lacks a function" {
	rm "$work/lib/libcupti.so.13"
	ln -s "$TRACED/libcupti_incomplete.so.13" "$work/lib/libcupti.so.13"
	falls_back "$work/lib/libcupti.so.13 lacks cuptiEnableCallback"
}

@test "injected, and somebody subscribed: a sentence that says what to do, no file" {
	CUDA_INJECTION64_PATH=$SHIM FAKE_CUPTI_HOLDER=Kineto GPUMEMTRACE_OUT=$work/out.gmt \
		"$PROGRAMS/families_sim13" device 2> "$work/error"
	grep -qF "Kineto is it; nothing is recorded; set LD_PRELOAD to libgpumemtrace.so" "$work/error"
	[ ! -e "$work/out.gmt" ]
}

@test "GPUMEMTRACE_DISABLE: an injection stays out" {
	CUDA_INJECTION64_PATH=$SHIM GPUMEMTRACE_DISABLE=1 GPUMEMTRACE_OUT=$work/out.gmt \
		"$PROGRAMS/families_sim13" device 2> "$work/error"
	[ ! -s "$work/error" ]
	[ ! -e "$work/out.gmt" ]
}

@test "CUDA 11.8's libcupti, found by name, with the older subscription" {
	rm "$work/lib/libcupti.so.13"
	mkdir -p "$work/cuda/extras/CUPTI/lib64"
	ln -s "$TRACED/libcupti.so.11.8" "$work/cuda/extras/CUPTI/lib64/libcupti.so.13"
	CUDA_HOME=$work/cuda GPUMEMTRACE_LOG=info seen cupti "$PROGRAMS/families_sim13" device
	grep -qF "extras/CUPTI/lib64/libcupti.so.13, API version 18" "$work/error"
	is cupti .backend '"cupti"'
	seen preload "$PROGRAMS/families_sim13" device
	alike preload cupti
}

@test "a driver of CUDA 12 is served by CUDA 12's libcupti, and not by a newer one" {
	mkdir "$work/newer"
	mv "$work/lib/libcupti.so.13" "$work/newer/"
	export LD_LIBRARY_PATH=$work/newer:$LD_LIBRARY_PATH
	GPUSIM_DRIVER=12080 seen cupti "$CUPTI_PROGRAMS/lives" leak
	grep -qF "CUPTI is not used: there is no libcupti" "$work/error"
	is cupti .backend '"preload"'
	ln -s "$TRACED/libcupti.so.11.8" "$work/newer/libcupti.so.12"
	GPUSIM_DRIVER=12080 GPUMEMTRACE_LOG=info seen cupti "$CUPTI_PROGRAMS/lives" leak
	grep -qF "recording by CUPTI (libcupti.so.12" "$work/error" ||
		grep -qF "newer/libcupti.so.12, API version 18" "$work/error"
	is cupti .backend '"cupti"'
}

@test "a libcupti that numbers functions otherwise: they are found by name" {
	FAKE_CUPTI_SHIFT=7 seen cupti "$PROGRAMS/families_sim13"
	is cupti .backend '"cupti"'
	seen preload "$PROGRAMS/families_sim13"
	alike preload cupti
}

@test "a function that this libcupti does not know is left out and said" {
	FAKE_CUPTI_LACKS=cuMemAllocManaged GPUMEMTRACE_LOG=info seen cupti "$PROGRAMS/families_sim13" managed
	grep -q "functions, 1 of ours it does not know" "$work/error"
	is cupti '[.usage[] | select(.kind == 2)]' '[]'
}

@test "refusals are the wrappers' business: CAPACITY and FAIL are ignored with a sentence" {
	GPUMEMTRACE_FAIL=1+ seen cupti "$PROGRAMS/families_sim13" device
	grep -qF "GPUMEMTRACE_CAPACITY and GPUMEMTRACE_FAIL need GPUMEMTRACE_BACKEND=preload" "$work/error"
	is cupti .backend '"cupti"'
}

@test "torch.profiler's loss is announced where libtorch is loaded" {
	mkdir "$work/torch"
	ln -s "$TRACED/libinjected.so" "$work/torch/libtorch_cpu.so"
	seen cupti env LD_PRELOAD="$SHIM:$work/torch/libtorch_cpu.so" \
		"$PROGRAMS/families_sim13" device
	grep -qF "gpumemtrace is it now: torch.profiler and other CUPTI tools get no GPU activities" "$work/error"
}

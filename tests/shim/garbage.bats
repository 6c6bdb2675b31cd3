#!/usr/bin/env bats
# garbage.cycles: what CPython's garbage collector freed, in a program that uses the driver by ctypes.
load helpers

# program STATEMENTS: 60 nodes of 1 MiB, of which `node(True)` refers to itself
program() {
	traced python3 -c '
import ctypes, gc
cuda = ctypes.CDLL("libcuda.so.1")
context = ctypes.c_void_p()
cuda.cuInit(0)
cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
cuda.cuCtxSetCurrent(context)
class Node:
    def __init__(self, cyclic):
        self.pointer, self.itself = ctypes.c_uint64(), self if cyclic else None
        assert not cuda.cuMemAlloc_v2(ctypes.byref(self.pointer), ctypes.c_size_t(1 << 20))
    def __del__(self, free=cuda.cuMemFree_v2):
        free(self.pointer)
def node(cyclic):
    Node(cyclic)
gc.collect()
gc.disable()
'"$1"
	report
}

garbage='[.findings[] | select(.id == "garbage.cycles")]'

@test "cycles are garbage of the peak when the collector frees them" {
	program '
for i in range(60): node(True)
gc.collect()
for i in range(10): node(False)'
	is "$garbage | length" 1
	is "$garbage[0].bytes" $((60 << 20))
	is "$garbage[0].severity" '"warning"'
	is "$garbage[0].title | test(\"up to 60.00 MiB of the peak was later freed by the garbage collector\")" true
	is "$garbage[0].evidence | test(\"freed 60 allocations of 60.00 MiB\")" true
	is "[.sites[] | .collected_bytes] | add" $((60 << 20))
	is "$garbage[0].site as \$site | .sites[] | select(.id == \$site) | .collected_bytes" $((60 << 20))
}

@test "the same in a long run, whose calls go straight through" {
	program '
for i in range(33000): node(False) # more events than the ring has
for i in range(60): node(True)
gc.collect()
node(False)'
	is '.tracer.history.source' '"ring"'
	is "$garbage[0].bytes" $((60 << 20))
	is "[.sites[] | .collected_bytes] | add" $((60 << 20))
}

@test "what came after the peak is none of it" {
	program '
large = [Node(False) for i in range(70)]
del large
for i in range(60): node(True)
gc.collect()
for i in range(10): node(False)'
	is "[.sites[] | .collected_bytes] | add" $((60 << 20))
	is "$garbage | length" 0
}

@test "the highest of what peaks lost counts, though a later peak is higher" {
	program '
for i in range(60): node(True)
gc.collect()
large = [Node(False) for i in range(70)]
node(True)
gc.collect()
node(False)'
	is "$garbage[0].bytes" $((60 << 20))
}

@test "no cycles, or few, or none before the end: no finding" {
	program '
for i in range(60): node(False)
gc.collect()'
	is "[.sites[] | .collected_bytes] | add" 0
	is "$garbage | length" 0
	program '
for i in range(60):
    node(True)
    gc.collect()
node(False)'
	is "[.sites[] | .collected_bytes] | add" $((60 << 20))
	is "$garbage | length" 0
	program '
for i in range(120):
    node(True)
    node(False)'
	is "[.sites[] | .collected_bytes] | add" 0
	is "$garbage | length" 0
	is '.findings[] | select(.id == "leak.grow") | .evidence | test("garbage collector, which the program had switched off")' true
}

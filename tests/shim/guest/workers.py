"""Four workers of a multiprocessing pool, each with blocks of its own pool: every one writes its own
file, the parent's stays the parent's. Argument: the start method. Prints every process's pid."""
import ctypes
import json
import multiprocessing
import os
import sys

shim = ctypes.CDLL(None)
alloc = shim.gpumemtrace_pool_alloc
alloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
free = shim.gpumemtrace_pool_free
free.argtypes = [ctypes.c_void_p]


def use(first):
    """Ten blocks, five of which stay; other addresses than the parent's."""
    for i in range(10):
        alloc(first + i, 1000, 0)
    for i in range(5):
        free(first + i)


def work(barrier):
    use(0x100000)
    barrier.wait()  # every worker is still there when the last one records


def main():
    context = multiprocessing.get_context(sys.argv[1])
    use(0x1000)
    barrier = context.Barrier(4)
    workers = [context.Process(target=work, args=(barrier,)) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    good = [w.pid for w in workers if w.exitcode == 0]
    print(json.dumps({"workers": len(good), "pids": [os.getpid()] + good}))


if __name__ == "__main__":
    main()

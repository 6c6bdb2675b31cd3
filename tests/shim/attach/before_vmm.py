"""Frees virtual memory that was mapped before the recording began, in the ways in which programs do it.

    before_vmm.py DRIVER STATED

STATED gets a line for each way: its name, the driver's free bytes before and after, and how far the row has to fall.
The shim sleeps when this begins. Between two ways the program waits for a line of standard input, so that the row
is read meanwhile.
"""
import ctypes
import sys

MIB = 1 << 20
cuda = ctypes.CDLL(sys.argv[1])
tracer = ctypes.CDLL(None)
stated = open(sys.argv[2], "w", buffering=1)

# CUmemAllocationProp: pinned memory (1) with no handle type, on device (1) 0 [cuda.h].
PROPERTIES = (ctypes.c_int * 8)(1, 0, 1, 0)
ACCESS = (ctypes.c_int * 3)(1, 0, 3)  # CUmemAccessDesc: device 0, read and write


def call(name, *arguments):
    error = getattr(cuda, name)(*arguments)
    assert error == 0, (name, error)


def free_bytes():
    now, total = ctypes.c_size_t(), ctypes.c_size_t()
    call("cuMemGetInfo_v2", ctypes.byref(now), ctypes.byref(total))
    return now.value


def create(size):
    handle = ctypes.c_uint64()
    call("cuMemCreate", ctypes.byref(handle), ctypes.c_size_t(size), PROPERTIES, ctypes.c_uint64(0))
    return handle


def reserve(size):
    address = ctypes.c_uint64()
    call("cuMemAddressReserve", ctypes.byref(address), ctypes.c_size_t(size), ctypes.c_size_t(0), ctypes.c_uint64(0), ctypes.c_uint64(0))
    return address.value


def map_at(address, size, handle):
    call("cuMemMap", ctypes.c_uint64(address), ctypes.c_size_t(size), ctypes.c_size_t(0), handle, ctypes.c_uint64(0))
    call("cuMemSetAccess", ctypes.c_uint64(address), ctypes.c_size_t(size), ACCESS, ctypes.c_size_t(1))


def unmap(address, size):
    call("cuMemUnmap", ctypes.c_uint64(address), ctypes.c_size_t(size))


def release(handle):
    call("cuMemRelease", handle)


def mapped(size):
    handle, address = create(size), reserve(size)
    map_at(address, size, handle)
    return handle, address


def retained(address):
    handle = ctypes.c_uint64()
    call("cuMemRetainAllocationHandle", ctypes.byref(handle), ctypes.c_void_p(address))
    return handle


assert cuda.cuInit(0) == 0
context = ctypes.c_void_p()
call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
call("cuCtxSetCurrent", context)

kept, kept_at = mapped(4 * MIB)
dropped, dropped_at = mapped(6 * MIB)
release(dropped)
early, early_at = mapped(8 * MIB)
twice, twice_at = mapped(10 * MIB)
twice_again = reserve(10 * MIB)
map_at(twice_again, 10 * MIB, twice)
moved, moved_at = mapped(12 * MIB)
asked, asked_at = mapped(14 * MIB)
PIECES = 20
pieces_at = reserve(PIECES * 2 * MIB)
pieces = [create(2 * MIB) for _ in range(PIECES)]
for place, piece in enumerate(pieces):
    map_at(pieces_at + place * 2 * MIB, 2 * MIB, piece)
unmapped = create(16 * MIB)
plain = ctypes.c_uint64()
call("cuMemAlloc_v2", ctypes.byref(plain), ctypes.c_size_t(18 * MIB))


def kept_handle():
    unmap(kept_at, 4 * MIB)
    release(kept)


def handle_released_before():
    unmap(dropped_at, 6 * MIB)


def handle_released_first():
    release(early)
    unmap(early_at, 8 * MIB)


def one_of_two_mappings():
    unmap(twice_at, 10 * MIB)
    release(twice)


def other_mapping():
    unmap(twice_again, 10 * MIB)


def moved_elsewhere():
    unmap(moved_at, 12 * MIB)
    map_at(moved_at, 12 * MIB, moved)


def handle_asked_for():
    handle = retained(asked_at)
    unmap(asked_at, 14 * MIB)
    release(handle)
    release(handle)


def many_pieces_at_once():
    unmap(pieces_at, PIECES * 2 * MIB)
    for piece in pieces:
        release(piece)


def never_mapped():
    """Its size is told by nobody: the row stays."""
    release(unmapped)


def of_the_period():
    handle, address = mapped(20 * MIB)
    unmap(address, 20 * MIB)
    release(handle)


def plain_memory():
    call("cuMemFree_v2", plain)


def nothing():
    """The row is read before anything is freed."""


def new_peak():
    """The ledger is sampled again."""
    call("cuMemAlloc_v2", ctypes.byref(plain), ctypes.c_size_t(256 * MIB))


assert tracer.gpumemtrace_start() == 0
for way, falls in ((nothing, 0), (kept_handle, 4), (handle_released_before, 6), (handle_released_first, 8), (one_of_two_mappings, 0), (other_mapping, 10),
                   (moved_elsewhere, 0), (handle_asked_for, 14), (many_pieces_at_once, 2 * PIECES), (never_mapped, 0), (of_the_period, 0),
                   (plain_memory, 18), (new_peak, 0)):
    before = free_bytes()
    way()
    print(way.__name__, before, free_bytes(), falls * MIB, file=stated)
    sys.stdin.readline()

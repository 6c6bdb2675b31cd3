"""A unittest suite in which every test begins with a mark of its own name:

    gpumem-report run --check "leaks=off --per-mark --warmup 1" -- python3 test_suite.py

fails for the tests that leave memory behind. Without the shim the marks do nothing.
"""
import ctypes
import unittest

mark = getattr(ctypes.CDLL(None), "gpumemtrace_mark", lambda name: None)
cudart = ctypes.CDLL("libcudart.so.13")
kept = []


def allocate(size):
    address = ctypes.c_void_p()
    assert cudart.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(size)) == 0
    return address


class Marked(unittest.TestCase):
    def setUp(self):
        mark(self._testMethodName.encode())

    @classmethod
    def tearDownClass(cls):
        mark(b"end of tests")


class Tests(Marked):
    def test_1_fills_the_cache(self):
        kept.append(allocate(1 << 20))

    def test_2_cleans_up(self):
        cudart.cudaFree(allocate(4096))

    def test_3_forgets_a_block(self):
        allocate(12288)

    def test_4_cleans_up_too(self):
        cudart.cudaFree(allocate(4096))


if __name__ == "__main__":
    unittest.main()

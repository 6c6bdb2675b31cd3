"""The pytest plugin, by suites of its own on the simulated GPU. Run by wheel.bats in an environment that has it."""
import pytest

HEADER = """
import ctypes
import pytest
import gpumemtrace

cudart = ctypes.CDLL("libcudart.so.13")
MIB = 1 << 20
kept = []


def allocate(size):
    address = ctypes.c_void_p()
    assert cudart.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(size)) == 0
    return address


def free(address):
    assert cudart.cudaFree(address) == 0

"""


@pytest.fixture
def suite(pytester, monkeypatch):
    monkeypatch.setenv("GPUMEMTRACE_QUIET", "1")

    def run(text, *options):
        pytester.makepyfile(test_suite=HEADER + text)
        cache = [] if "cacheprovider" in options else ["-p", "no:cacheprovider"]
        return pytester.runpytest_subprocess(*cache, "--rootdir=.", *(word for word in options if word != "cacheprovider"))

    return run


LIMITED = """
@pytest.mark.limit_gpu_memory("2 MiB")
def test_within():
    free(allocate(2 * MIB))

@pytest.mark.limit_gpu_memory("2 MiB")
def test_over():
    first = allocate(2 * MIB)
    second = allocate(MIB)
    free(first)
    free(second)
"""


def test_limits_hold_only_with_the_option(suite):
    suite(LIMITED).assert_outcomes(passed=2)


def test_limit_of_memory_is_of_the_highest_moment(suite):
    result = suite(LIMITED, "--gpumem")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines([
        "*test_over*",
        "The test took 3.0 MiB on device 0; its limit is 2 MiB.",
        "Sites that allocated in the test, with the most that each held at once:",
        "  2.0 MiB, device memory:",
        "*allocate (*test_suite.py:*)",
        "*test_over (*test_suite.py:*)",
        "  1.0 MiB, device memory:",
        "  Folded, with bytes:",
        "    test_over;allocate;* 2097152",
        "    test_over;allocate;* 1048576",
    ])
    assert "_pytest" not in result.stdout.str()


def test_what_earlier_tests_and_fixtures_hold_does_not_count(suite):
    suite("""
def test_first():
    kept.append(allocate(8 * MIB))

@pytest.fixture
def model():
    address = allocate(4 * MIB)
    yield address
    free(address)

@pytest.mark.limit_gpu_memory("1 MiB")
@pytest.mark.limit_gpu_leaks("0")
def test_second(model):
    free(allocate(1 * MIB))
""", "--gpumem").assert_outcomes(passed=2)


def test_leak_fails_with_its_stack_and_size(suite):
    result = suite("""
def test_before():
    kept.append(allocate(64 * MIB))

@pytest.mark.limit_gpu_leaks("1 MiB")
def test_leaks():
    free(allocate(32 * MIB))
    kept.append(allocate(3 * MIB))

@pytest.mark.limit_gpu_leaks("3 MiB")
def test_may():
    kept.append(allocate(3 * MIB))
""", "--gpumem")
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines([
        "The test left 3.0 MiB on device 0; its limit is 1 MiB.",
        "Allocated in the test and still there:",
        "  3.0 MiB, device memory:",
        "*test_leaks (*test_suite.py:*)",
    ])
    assert "64.0 MiB, device" not in result.stdout.str()


def test_warmups_run_first_and_are_not_measured(suite):
    text = """
calls = []

@pytest.mark.limit_gpu_leaks("1 KiB", warmups=%d)
def test_cache():
    calls.append(1)
    if len(calls) <= 2:
        kept.append(allocate(MIB))

def test_calls():
    assert len(calls) == %d
"""
    suite(text % (2, 3), "--gpumem").assert_outcomes(passed=2)
    suite(text % (1, 2), "--gpumem").assert_outcomes(passed=1, failed=1)
    suite(text % (2, 1)).assert_outcomes(passed=2)


def test_warmup_that_fails_is_the_failure(suite):
    result = suite("""
@pytest.mark.limit_gpu_leaks("1 KiB", warmups=1)
def test_broken():
    raise KeyError("as it is")

@pytest.mark.limit_gpu_leaks("1 KiB", warmups=1)
def test_skipped():
    pytest.skip("not here")
""", "--gpumem")
    result.assert_outcomes(failed=1, skipped=1)
    result.stdout.fnmatch_lines(["*KeyError: 'as it is'"])


def test_garbage_in_cycles_is_no_leak(suite):
    suite("""
class Tensor:
    def __init__(self):
        self.address, self.cycle = allocate(MIB), self

    def __del__(self):
        free(self.address)

@pytest.mark.limit_gpu_leaks("0")
def test_cycle():
    Tensor()
""", "--gpumem").assert_outcomes(passed=1)


def test_unittest_classes_are_measured_too(suite):
    result = suite("""
import unittest

class TestCase(unittest.TestCase):
    @pytest.mark.limit_gpu_leaks("1 MiB")
    def test_leaks(self):
        kept.append(allocate(2 * MIB))
""", "--gpumem")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["The test left 2.0 MiB on device 0; its limit is 1 MiB."])


def test_first_use_of_the_gpu_late_in_a_long_suite(suite):
    result = suite("""
@pytest.mark.parametrize("number", range(40))
def test_without(number):
    pass

@pytest.mark.limit_gpu_leaks("1 MiB")
def test_with_a_name_that_is_longer_than_sixty_three_bytes_so_that_it_would_be_cut():
    kept.append(allocate(2 * MIB))
""", "--gpumem")
    result.assert_outcomes(passed=40, failed=1)
    result.stdout.fnmatch_lines(["  2.0 MiB, device memory:"])


def test_table_at_the_end(suite):
    result = suite("""
def test_large():
    free(allocate(5 * MIB))

def test_none():
    pass

def test_small():
    kept.append(allocate(2 * MIB))

def test_smallest():
    free(allocate(512))
""", "--gpumem", "--gpumem-top=2")
    result.stdout.fnmatch_lines([
        "*= GPU memory of tests =*",
        "        took         left  test",
        "     5.0 MiB          0 B  test_suite.py::test_large",
        "     2.0 MiB      2.0 MiB  test_suite.py::test_small",
        "and 1 more, --gpumem-top shows them",
    ], consecutive=True)


def test_figures_are_in_the_junit_file(suite, pytester):
    suite("""
def test_large():
    kept.append(allocate(7))
    free(allocate(5 * MIB))
""", "--gpumem", "--junitxml=out.xml")
    text = (pytester.path / "out.xml").read_text()
    assert f'name="gpumem_peak_bytes" value="{5 * (1 << 20) + 7}"' in text
    assert 'name="gpumem_left_bytes" value="7"' in text


def test_the_file_is_where_it_was_asked_for_and_has_a_mark_for_each_test(suite, pytester):
    suite("def test_a():\n    allocate(1)\n", "--gpumem", "--gpumem-out=kept.gmt")
    data = (pytester.path / "kept.gmt").read_bytes()
    assert b"test_suite.py::test_a" in data


def test_files_lie_in_the_cache_of_pytest(suite, pytester, monkeypatch):
    monkeypatch.delenv("GPUMEMTRACE_OUT", raising=False)
    result = suite("def test_a():\n    allocate(1)\n", "--gpumem", "cacheprovider")
    found = list(pytester.path.rglob("*.gmt"))
    assert [path.parent.relative_to(pytester.path).as_posix() for path in found] == [".pytest_cache/d/gpumem"], found
    result.stdout.fnmatch_lines([f"recorded in {found[0].relative_to(pytester.path)}"])
    assert (pytester.path / ".pytest_cache" / ".gitignore").exists(), "the cache is not as pytest makes it"
    suite("def test_a():\n    allocate(1)\n", "--gpumem")
    assert list(pytester.path.glob("gpumemtrace.*.gmt")), "without a cache the file lies in the working folder"


def test_a_failure_names_what_keeps_the_memory_alive(suite, pytester):
    result = suite("""
class Trainer:
    pass

trainer = Trainer()

@pytest.mark.limit_gpu_leaks("0")
def test_leaks():
    trainer.losses = [allocate(MIB), allocate(MIB)]
""", "--gpumem")
    result.assert_outcomes(failed=1)
    lines = [line.strip() for line in result.stdout.lines if "kept alive by" in line or "is not known" in line]
    may_look = "is not known: " not in lines[0]
    assert not may_look or lines == [
        "kept alive by module test_suite → trainer → Trainer.losses → list (2 entries) → c_void_p → block"], lines


WITHOUT_GPU = """
@pytest.mark.limit_gpu_memory("1 MiB")
def test_limited():
    cudart.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(1))

def test_unlimited():
    pass
"""


def test_a_limit_is_not_measured_without_a_gpu(suite, monkeypatch):
    monkeypatch.setenv("GPUSIM_DEVICES", "0")
    result = suite(WITHOUT_GPU, "--gpumem")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["Not measured: no GPU was used.*", "no test allocated GPU memory"])
    suite(WITHOUT_GPU, "--gpumem", "--gpumem-allow-unmeasured").assert_outcomes(passed=2)


def test_a_limit_is_not_measured_without_any_cuda_call(suite):
    suite("""
@pytest.mark.limit_gpu_leaks("0")
def test_limited():
    pass
""", "--gpumem").assert_outcomes(failed=1)


def test_nothing_is_a_figure_where_a_gpu_is_in_use(suite):
    suite("""
def test_first():
    free(allocate(1))

@pytest.mark.limit_gpu_leaks("0")
def test_limited():
    pass
""", "--gpumem").assert_outcomes(passed=2)


@pytest.mark.parametrize("marker, sentence", [
    ('limit_gpu_memory("2 parsecs")', '*limit_gpu_memory: "2 parsecs" is no size: it should be like*'),
    ('limit_gpu_memory()', "*limit_gpu_memory: it takes a size"),
    ('limit_gpu_memory("1 MiB", warmups=2)', "*limit_gpu_memory: it takes a size"),
    ('limit_gpu_leaks("1 MiB", warmups=-1)', "*limit_gpu_leaks: warmups=-1 is no number of runs"),
])
def test_a_bad_marker_fails_its_own_test_alone(suite, marker, sentence):
    result = suite(f"@pytest.mark.{marker}\ndef test_a():\n    pass\n\ndef test_b():\n    pass\n", "--gpumem")
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines([sentence])


def test_a_tracer_that_is_switched_off_is_told(suite, monkeypatch):
    monkeypatch.setenv("GPUMEMTRACE_DISABLE", "1")
    result = suite("def test_a():\n    pass\n", "--gpumem")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*GPUMEMTRACE_DISABLE is set*"])


def test_options_and_working_folder_survive_the_second_start(suite, monkeypatch):
    monkeypatch.setenv("LD_PRELOAD", "libm.so.6")
    result = suite("""
import os, sys

def test_a(request):
    assert request.config.getoption("verbose") == 1
    assert sys.flags.dev_mode is False
    before, tracer = os.environ["LD_PRELOAD"].split(":")
    assert before == "libm.so.6" and tracer.endswith("/libgpumemtrace.so")
""", "--gpumem", "-v", "-k", "test_a")
    result.assert_outcomes(passed=1)

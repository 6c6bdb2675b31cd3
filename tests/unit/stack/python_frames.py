# -*- coding: utf-8 -*-
"""Python frames as the shim reads them, held against what this very interpreter says of itself.

Run by every CPython from 3.8 on that the build machine has:  python_frames.py LIBPROBE
"""
import _thread
import asyncio
import contextlib
import ctypes
import gc
import marshal
import os
import subprocess
import sys
import threading
import types
import unittest

LIBRARY = os.environ.get("PROBE") or sys.argv.pop(1)
probe = ctypes.CDLL(LIBRARY)
probe_gil = ctypes.PyDLL(LIBRARY)  # calls keep the GIL
for library in (probe, probe_gil):
    for name in ("gm_stack_python", "gm_stack_unwinder", "probe_caller_module"):
        getattr(library, name).restype = ctypes.c_char_p
    library.probe_stack.restype = ctypes.c_uint32
    library.probe_stack_deep.restype = ctypes.c_uint32
    library.probe_many.restype = ctypes.c_uint32
    library.probe_stack_on_thread.restype = ctypes.c_uint32
    library.probe_describe.restype = ctypes.c_size_t
    library.probe_describe.argtypes = [ctypes.c_uint32, ctypes.c_void_p, ctypes.c_size_t]

take = probe.probe_stack
NONE = 0xFFFFFFFF
TRUNCATED, PYTHON_TRUNCATED, INCOMPLETE, UNREADABLE = 1, 2, 4, 8
FULL, NATIVE, PYTHON, OFF = 0, 1, 2, 3


class Stack:
    def __init__(self, number):
        room = ctypes.create_string_buffer(1 << 20)
        probe.probe_describe(number, room, len(room))
        self.number, self.python, self.native, self.flags = number, [], [], 0
        self.order = ""
        for line in room.value.decode("utf-8").splitlines():
            field = line.split("\t")
            if field[0] == "flags":
                self.flags = int(field[1])
            elif field[0] == "python":
                self.python.append((field[1], field[2], int(field[3])))
                self.order += "p"
            else:
                self.native.append((field[1], int(field[2], 16)))
                self.order += "n"


def name_of(code):
    return getattr(code, "co_qualname", code.co_name)


def walk(frame):
    """The same by CPython itself."""
    found = []
    while frame:
        found.append((name_of(frame.f_code), frame.f_code.co_filename, frame.f_lineno or 0))
        frame = frame.f_back
    return found


here = sys._getframe


class Frames(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        probe.probe_start(FULL, 200)

    def same(self, number, expected):
        stack = Stack(number)
        self.assertEqual(stack.python, expected)
        self.assertEqual(stack.flags, 0)
        return stack

    def test_says_its_version(self):
        self.assertEqual(probe.gm_stack_python().decode(), "%d.%d.%d" % sys.version_info[:3])

    def test_plain(self):
        number, expected = take(0), walk(here())
        stack = self.same(number, expected)
        self.assertRegex(stack.order, "^n+p+$")
        interpreter = ("libpython", "/bin/python")
        for path, _ in stack.native:
            self.assertFalse(any(i in path for i in interpreter), path)
            self.assertNotIn("libprobe", path)

    def test_line_of_the_running_instruction(self):
        result = [
            1,
            (take(0), walk(here())),
            2,
        ]
        self.same(*result[1])
        try:
            raise KeyError
        except KeyError:
            number, expected = take(0), walk(here())
        finally:
            number2, expected2 = take(0), walk(here())
        self.same(number, expected)
        self.same(number2, expected2)
        with contextlib.suppress(ValueError):
            number, expected = take(0), walk(here())
        self.same(number, expected)
        for i in range(3):
            number, expected = (take(
                0)), walk(here())
            if i:
                number, expected = take(0), walk(here())
        self.same(number, expected)

    def test_long_functions_and_jumps_back(self):
        for gap in (1, 3, 120, 130, 300, 5000):
            source = "def f():\n" + "\n" * gap + " x = 1\n" + " x += 1\n" * gap + \
                "\n" * gap + " return take(0), walk(here())\n"
            space = dict(take=take, walk=walk, here=here)
            exec(compile(source, "<gap %d>" % gap, "exec"), space)
            number, expected = space["f"]()
            stack = Stack(number)
            self.assertEqual(stack.python[0], expected[0])
            self.assertEqual(stack.python[0][2], 3 * gap + 3)

    def test_lambda_comprehension_class(self):
        self.same(*(lambda: (take(0), walk(here())))())
        self.same(*[(take(0), walk(here())) for _ in range(2)][1])
        self.same(*{0: (take(0), walk(here())) for _ in range(2)}[0])
        self.same(*next((take(0), walk(here())) for _ in range(2)))

        class Body:
            both = take(0), walk(here())

            @property
            def attribute(self):
                return take(0), walk(here())

            def __enter__(self):
                return take(0), walk(here())

            def __exit__(self, *_):
                Body.left = take(0), walk(here())

            def __del__(self):
                Body.deleted = take(0), walk(here())

        self.same(*Body.both)
        self.same(*Body().attribute)
        self.same(*Body.deleted)
        with Body() as entered:
            self.same(*entered)
        self.same(*Body.left)
        found = []
        sorted([2, 1], key=lambda x: found.append((take(0), walk(here()))) or x)
        self.same(*found[1])

    def test_cycle_collected(self):
        found = []

        class Cycle:
            def __del__(self):
                found.append((take(0), walk(here())))

        one = Cycle()
        one.me = one
        del one
        gc.collect()
        self.same(*found[0])

    def test_generators(self):
        def inner():
            yield take(0), walk(here())
            try:
                yield 1
            except ValueError:
                yield take(0), walk(here())

        def outer():
            yield from inner()

        generator = outer()
        self.same(*next(generator))
        next(generator)
        self.same(*generator.throw(ValueError()))
        self.same(*max(inner(), key=lambda x: isinstance(x, tuple)))

    def test_coroutines(self):
        class Awaitable:
            def __await__(self):
                yield
                return take(0), walk(here())

        async def leaf():
            await asyncio.sleep(0)
            return take(0), walk(here())

        async def items():
            await asyncio.sleep(0)
            yield take(0), walk(here())

        async def top():
            self.same(*await leaf())
            self.same(*await Awaitable())
            self.same(*[x async for x in items()][0])
            for result in await asyncio.gather(leaf(), leaf()):
                self.same(*result)
            return take(0), walk(here())

        loop = asyncio.new_event_loop()
        try:
            self.same(*loop.run_until_complete(top()))
        finally:
            loop.close()

    def test_deep_recursion(self):
        def down(n):
            return down(n - 1) if n else (take(0), walk(here()))

        number, expected = down(80)
        self.same(number, expected)
        probe.probe_start(FULL, 40)
        number, expected = down(80)
        stack = Stack(number)
        self.assertEqual(len(stack.order), 40)
        self.assertEqual(stack.python, expected[:len(stack.python)])
        self.assertEqual(stack.flags, TRUNCATED | PYTHON_TRUNCATED)
        number, expected = down(900)
        self.assertEqual(Stack(number).flags, TRUNCATED | PYTHON_TRUNCATED)

    def test_depth_is_exact(self):
        number, expected = take(0), walk(here())
        natives = len(Stack(number).native)
        probe.probe_start(FULL, natives + len(expected))
        number, expected = take(0), walk(here())
        stack = self.same(number, expected)
        self.assertEqual(len(stack.native), natives)
        probe.probe_start(FULL, natives + len(expected) - 1)
        stack = Stack(take(0))
        self.assertEqual(stack.python, [f[:2] + (stack.python[i][2],)
                                        for i, f in enumerate(expected[:-1])])
        self.assertEqual(stack.flags, TRUNCATED | PYTHON_TRUNCATED)

    def test_half_of_a_shallow_stack_is_python(self):
        def down(n):
            return down(n - 1) if n else take(6)

        stack = Stack(down(20))
        self.assertEqual(stack.order, "nnnppp")
        self.assertEqual([f[0].split(".")[-1] for f in stack.python], ["down"] * 3)

    def test_names_of_all_widths(self):
        # ASCII, Latin-1, two bytes, four bytes
        for name in ("plain", "\u00e9t\u00e9", "\u6e2c\u8a66\u540d", "\U000102a7\U000102a8x"):
            for file in ("/tmp/a.py", "/tmp/\u00fc.py", "/tmp/\u6e2c.py", "/tmp/\U0001f600.py"):
                source = "def %s():\n\n return take(0), walk(here())" % name
                space = dict(take=take, walk=walk, here=here)
                exec(compile(source, file, "exec"), space)
                stack = self.same(*space[name]())
                self.assertEqual(stack.python[0], (name, file, 3))

    def test_long_names_are_cut(self):
        name, file = "n" * 5000, "/" + "f\u00e9" * 3000
        space = dict(take=take)
        exec(compile("def %s():\n return take(0)" % name, file, "exec"), space)
        got = Stack(space[name]()).python[0]
        self.assertEqual(got[0], name[:1023])
        self.assertEqual(got[1], file.encode("utf-8")[:4095].decode("utf-8", "ignore"))

    def test_strange_texts(self):
        def f():
            return take(0)

        if not hasattr(f.__code__, "replace"):
            return
        f.__code__ = f.__code__.replace(co_filename="/tmp/\udcff\0.py")
        self.assertEqual(Stack(f()).python[0][1], "/tmp/\ufffd\ufffd.py")
        f.__code__ = f.__code__.replace(co_filename="")
        self.assertEqual(Stack(f()).python[0][1], "")

    @unittest.skipUnless(os.path.exists("/proc/self/maps"), "tells what memory is there")
    def test_file_name_of_another_class(self):
        """Its characters are not in the object: where a plain one's would end, there may be nothing."""
        class Name(str):
            pass

        def is_there(address):
            with open("/proc/self/maps") as maps:
                ranges = [line.split()[0].split("-") for line in maps]
            return any(int(start, 16) <= address < int(end, 16) for start, end in ranges)

        length, name = 1 << 20, Name("short")
        while is_there(id(name) + 40 + length):
            length *= 2
            name = Name("x" * length)
        take(0)
        space = dict(take=take)
        exec(compile("def f():\n return take(0)", name, "exec"), space)
        self.assertIs(type(space["f"].__code__.co_filename), Name)
        for _ in range(2):
            self.assertEqual(Stack(space["f"]()).python[0], ("f", name[:4095], 2))

    def test_dead_code_objects(self):
        """Code that dies and whose address is used again: every capture is right, every time."""
        addresses, reused = set(), 0
        for i in range(3000):
            kind = i % 4
            source = "def f%d():\n%s return take(0)" % (i % 3 if kind else 7, "\n" * (i % 5))
            file = "<cell %d>" % (i % 2 if kind < 2 else 5)
            space = dict(take=take)
            exec(compile(source, file, "exec"), space)
            function = space["f%d" % (i % 3 if kind else 7)]
            got = Stack(function()).python[0]
            self.assertEqual(got, (function.__name__, file, 2 + i % 5))
            reused += id(function.__code__) in addresses
            addresses.add(id(function.__code__))
            del function, space
        self.assertGreater(reused, 1000)

    def test_code_in_anothers_place(self):
        """Another's address, size and place in it, where the one before was met again and again."""
        texts, before, reused = [], None, 0
        for blank in ("", "\n"):
            space = {}
            exec(compile(blank + "def f():\n return take(0)", "<cell>", "exec"), space)
            texts.append(marshal.dumps(space["f"].__code__))
        del space
        for i in range(300):
            function = types.FunctionType(marshal.loads(texts[i % 2]), {"take": take})
            reused += id(function.__code__) == before
            for _ in range(6):
                self.assertEqual(Stack(function()).python[0], ("f", "<cell>", 2 + i % 2))
            before = id(function.__code__)
            del function
        self.assertGreater(reused, 30)

    def test_fewer_or_more_of_the_same(self):
        """Calls within Python leave no native frame: only Python's own tell how many they are."""
        found = []

        def descend(left, done):
            found.append(descend(left - 1, None) if left else (take(0), walk(here())))
            if done:
                done.release()
            return found[-1]

        for _ in range(5):
            for depth in (5, 5, 5, 5, 5, 4, 5, 5, 5, 5, 5, 6):  # no frame of Python's outside of these
                done = threading.Lock()
                done.acquire()
                _thread.start_new_thread(descend, (depth, done))
                done.acquire()
                self.same(*found[-1])
                self.assertEqual(len(found[-1][1]), depth + 1)

    def test_compiled_again_is_the_same_site(self):
        numbers = set()
        keep = []
        for i in range(20):
            space = dict(take=take)
            exec(compile("def f():\n return take(0)", "<again>", "exec"), space)
            keep.append(space["f"])
            numbers.add(space["f"]())
        self.assertEqual(len(numbers), 1)

    def test_first_and_later_calls_are_one_site(self):
        def site():
            return take(0)

        numbers = {site() for _ in range(3000)}
        self.assertEqual(len(numbers), 1)

    def test_known_stack_waits_for_nobody(self):
        """Not even while another thread writes something new down."""
        held, taken, in_time = threading.Event(), threading.Event(), []

        def hold():
            probe.gm_intern_enter()
            held.set()
            in_time.append(taken.wait(10))
            probe.gm_intern_leave()

        sites = {
            "a": lambda: take(0),
            "b": lambda: take(0),
            " ": lambda: hold_it(),
        }

        def hold_it():
            holder.start()
            held.wait()

        holder = threading.Thread(target=hold)
        numbers = {}
        # then in an order that was never there: none is expected
        for site in "aaaabbbb" + " " + "ababbaabaaba":
            numbers.setdefault(site, set()).add(sites[site]())
        taken.set()
        holder.join()
        self.assertEqual([len(numbers["a"] | numbers["b"]), len(numbers["a"])], [2, 1])
        self.assertEqual(in_time, [True])

    def test_loop_in_c_is_one_site(self):
        self.same(probe.probe_many(1000), walk(here()))

    def test_gil_held(self):
        number, expected = probe_gil.probe_stack(0), walk(here())
        self.same(number, expected)

    def test_threads(self):
        failures, barrier = [], threading.Barrier(8)

        def down(n):
            return down(n - 1) if n else (take(0), walk(here()))

        def work(index):
            barrier.wait()
            for i in range(300):
                number, expected = down((index + i) % 7)
                if Stack(number).python != expected:
                    failures.append((Stack(number).python, expected))

        threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])

    def test_thread_without_python(self):
        stack = Stack(probe.probe_stack_on_thread())
        self.assertEqual(stack.python, [])
        self.assertNotEqual(stack.native, [])
        self.assertEqual(stack.flags, 0)

    def test_callback(self):
        """Python, C, Python, C: all Python frames, the natives of the innermost stretch."""
        found = []

        @ctypes.CFUNCTYPE(None, ctypes.c_void_p)
        def callback(_):
            found.append((take(0), walk(here())))

        def outer():
            probe.probe_call(callback, None)
            return take(0), walk(here())

        direct = outer()
        self.same(*direct)
        stack = self.same(*found[0])
        self.assertRegex(stack.order, "^n+p+$")
        self.assertEqual(len(stack.native), len(Stack(direct[0]).native))

    def test_deeper_in_the_shim(self):
        for frames in (0, 5, 20):
            self.same(probe.probe_stack_deep(0, frames), walk(here()))
        probe.probe_start(FULL, 12)
        a, b, c = (probe.probe_stack_deep(0, frames) for frames in (0, 9, 20))
        self.assertEqual(Stack(a).native[1:], Stack(b).native[1:])
        self.assertEqual(Stack(b).order, Stack(c).order)

    def test_traced(self):
        def traced():
            x = 1
            return take(0), walk(here()), x

        for switch in (sys.settrace, sys.setprofile):
            switch(lambda *_: None)
            try:
                number, expected, _ = traced()
            finally:
                switch(None)
            self.same(number, expected)

        found = []

        def tracer(frame, event, arg):
            if frame.f_code.co_name == "traced" and event == "line":
                found.append((take(0), walk(here())))
            return tracer

        sys.settrace(tracer)
        try:
            traced()
        finally:
            sys.settrace(None)
        for number, expected in found:
            self.assertEqual(Stack(number).python, expected)
        self.assertGreater(len(found), 1)

    @unittest.skipUnless(hasattr(sys, "monitoring"), "3.12 on")
    def test_monitored(self):
        tool = sys.monitoring.DEBUGGER_ID
        sys.monitoring.use_tool_id(tool, "test")
        sys.monitoring.register_callback(tool, sys.monitoring.events.LINE, lambda *_: None)
        sys.monitoring.set_events(tool, sys.monitoring.events.LINE | sys.monitoring.events.CALL)
        try:
            number, expected = take(0), walk(here())
        finally:
            sys.monitoring.set_events(tool, 0)
            sys.monitoring.free_tool_id(tool)
        self.same(number, expected)

    def test_modes(self):
        probe.probe_start(NATIVE, 200)
        stack = Stack(take(0))
        self.assertEqual(stack.python, [])
        self.assertEqual(stack.flags, 0)
        self.assertGreater(len(stack.native), 8)
        probe.probe_start(PYTHON, 200)
        number, expected = take(0), walk(here())
        stack = self.same(number, expected)
        self.assertEqual(stack.native, [])
        self.assertEqual(probe.probe_stack_on_thread(), NONE)
        probe.probe_start(OFF, 200)
        self.assertEqual(take(0), NONE)
        probe.probe_start(FULL, 200)

    def test_fallback_unwinder(self):
        natives = Stack(take(0)).native
        self.assertTrue(probe.probe_start_with(b"libgcc", 200))
        number, expected = take(0), walk(here())
        stack = self.same(number, expected)
        self.assertEqual(stack.native[-3:], natives[-3:])

    def test_unwinders_agree(self):
        """The unwind tables and libgcc see the same, out of many a C function's callback."""
        import functools
        import json
        import re
        import xml.parsers.expat
        agree = probe.probe_unwinders_agree
        agree.restype = ctypes.c_bool
        asked = []

        def ask(*_):
            asked.append(agree())
            return asked[-1]

        self.assertTrue(probe.probe_start_with(b"libgcc", 200))
        self.assertTrue(probe.probe_start_with(b"unwind tables", 200))
        ask()
        sorted([2, 1], key=ask)
        list(map(ask, [1]))
        list(filter(ask, [1]))
        functools.reduce(ask, [1, 2, 3])
        functools.partial(ask, 1)()
        re.sub("a", lambda m: str(ask()), "bab")
        json.loads('{"a": {}}', object_hook=ask)
        parser = xml.parsers.expat.ParserCreate()
        parser.StartElementHandler = ask
        parser.Parse("<a><b/></a>", True)
        with contextlib.suppress(ImportError):
            import sqlite3
            base = sqlite3.connect(":memory:")
            base.create_function("ask", 1, ask)
            base.execute("select ask(1)").fetchall()
            base.close()
        with contextlib.suppress(ImportError):
            import numpy
            numpy.vectorize(ask)(numpy.arange(3))
            numpy.apply_along_axis(ask, 0, numpy.arange(4).reshape(2, 2))
        thread = threading.Thread(target=ask)
        thread.start()
        thread.join()

        class Finalised:
            __del__ = ask

        del Finalised
        gc.collect()
        self.assertGreater(len(asked), 12)
        self.assertEqual(asked, [True] * len(asked))

    def test_caller_module(self):
        take(0)
        self.assertRegex(os.path.basename(probe.probe_caller_module().decode()), "ffi|_ctypes")

    def test_full_store(self):
        probe.store_double_fill(True)
        self.assertEqual(take(0), NONE)
        probe.store_double_fill(False)
        self.same(take(0), walk(here()))

    def test_fork(self):
        self.same(take(0), walk(here()))
        pid = os.fork()
        if not pid:
            status = 1
            try:
                probe.probe_start(FULL, 200)
                number, expected = take(0), walk(here())
                status = int(Stack(number).python != expected)
            finally:
                os._exit(status)
        self.assertEqual(os.waitpid(pid, 0)[1], 0)

    def test_subinterpreter(self):
        """
        3.12 on: a sub-interpreter's frames. Before, PyGILState knows only the thread's first state: the
        frames of the interpreter that started the other are all there is to see.
        """
        names = ("_interpreters", "_xxsubinterpreters")
        module = None
        for name in names:
            with contextlib.suppress(ImportError):
                module = module or __import__(name)
        if not module:
            self.skipTest("no sub-interpreters")
        number = ctypes.c_uint32(NONE)
        code = "\n".join([
            "import ctypes",
            "library = ctypes.CDLL(%r)" % LIBRARY,
            "def inside():",
            "    ctypes.c_uint32.from_address(%d).value = library.probe_stack(0)"
            % ctypes.addressof(number),
            "inside()"])
        if sys.version_info >= (3, 13):
            interpreter = module.create("legacy")
        elif sys.version_info >= (3, 9):
            interpreter = module.create(isolated=False)
        else:
            interpreter = module.create()
        self.assertFalse(module.run_string(interpreter, code))
        module.destroy(interpreter)
        stack = Stack(number.value)
        if sys.version_info >= (3, 12):
            self.assertEqual([f[0::2] for f in stack.python], [("inside", 4), ("<module>", 5)])
        else:
            self.assertEqual(stack.python[1:], walk(here())[1:])
        self.same(take(0), walk(here()))

    def run_apart(self, source):
        """In a process of its own, to its very end; what it printed."""
        head = "import sys; sys.argv = ['', %r]; __name__ = 'apart'\n" % LIBRARY
        with open(os.path.abspath(__file__), encoding="utf-8") as this:
            head += this.read()
        ran = subprocess.run([sys.executable, "-c", "import sys; exec(sys.stdin.read())"],
                             input=head + "\nprobe.probe_start(FULL, 200)\n" + source,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             universal_newlines=True, timeout=120,
                             env=dict(os.environ, PYTHONIOENCODING="utf-8"))
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))
        return ran.stdout.split()

    def test_finalisation(self):
        out = self.run_apart("""
import atexit
def at_the_end():
    print(*[f[0] for f in Stack(take(0)).python], flush=True)
atexit.register(at_the_end)
class Last:
    # its own names only: by then nothing else is left
    def __del__(self, take=take, write=os.write, describe=probe.probe_describe,
                room=ctypes.create_string_buffer(100000), size=100000):
        describe(take(0), room, size)
        line = [line for line in room.value.split(b"\\n") if line.startswith(b"python")][0]
        write(1, line.split(b"\\t")[1])
sys.kept_to_the_last = Last()
""")
        self.assertEqual(out, ["at_the_end", "Last.__del__" if sys.version_info >= (3, 11)
                               else "__del__"])

    def test_names_of_a_class_of_ones_own(self):
        """Met in the first chain, by which the interpreter's structures are checked."""
        out = self.run_apart("""
class Text(str):
    pass
class Derived(Text):
    pass
class Table(bytes):
    pass
def f():
    return take(0), walk(here())
lines = "co_linetable" if sys.version_info >= (3, 10) else "co_lnotab"
own = {"co_name": Derived("f"), "co_filename": Text("f\u00fcr sich"), lines: Table(getattr(f.__code__, lines))}
if sys.version_info >= (3, 11):
    own["co_qualname"] = Derived("\U0001f40d.f")
f.__code__ = f.__code__.replace(**own)
number, expected = f()
print(type(f.__code__.co_filename).__name__, Stack(number).python == expected, Stack(number).flags)
f.__code__ = f.__code__.replace(co_filename=Derived("apart.py"))
number, expected = f()
print(Stack(number).python == expected, probe.gm_stack_python().decode())
""")
        self.assertEqual(out, ["Text", "True", "0", "True", "%d.%d.%d" % sys.version_info[:3]])

    def test_collections_are_known(self):
        """The state of the garbage collector, in frees that it makes and in others."""
        seen = []

        class Node:
            def __init__(self):
                self.itself = self

            def __del__(self):
                seen.extend((library.gm_python_collecting(), library.gm_python_ending())
                            for library in (probe, probe_gil))

        class Leaf:
            __del__ = Node.__del__

        for library in (probe, probe_gil):
            library.gm_python_collecting.restype = library.gm_python_ending.restype = ctypes.c_bool
            library.gm_python_collector_off.restype = ctypes.c_bool
        take(0)
        Leaf()
        self.assertEqual(seen, [(False, False)] * 2)
        for _ in range(2):
            seen.clear()
            Node()
            gc.collect()
            self.assertEqual(seen, [(True, False)] * 2)
        seen.clear()
        Leaf()
        self.assertEqual(seen, [(False, False)] * 2)
        self.assertFalse(probe.gm_python_collector_off())
        gc.disable()
        self.assertEqual(probe.gm_python_collector_off(), sys.version_info < (3, 14))
        gc.enable()

    def test_the_last_collection_is_at_the_end(self):
        out = self.run_apart("""
class Node:
    def __init__(self):
        self.itself = self
        self.tell = print
        self.known = probe.gm_python_collecting, probe.gm_python_ending, probe.gm_python_collector_off
    def __del__(self):
        self.tell(*[f() & 255 for f in self.known])
import gc
gc.disable()
take(0)
Node()
""")
        self.assertEqual(out, ["1", "1", str(int(sys.version_info < (3, 14)))])

    def test_daemon_threads_at_the_end(self):
        """Threads that go on taking stacks while the interpreter ends under them."""
        for _ in range(5):
            self.run_apart("""
started = threading.Barrier(5)
def go_on():
    started.wait()
    while True:
        probe.probe_many(50)
for i in range(4):
    threading.Thread(target=go_on, daemon=True).start()
started.wait()
""")


if __name__ == "__main__":
    print("CPython", sys.version.split()[0], "at", sys.executable, flush=True)
    unittest.main()

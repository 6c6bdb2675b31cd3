"""Every refusal of holders, word for word as docs/holders.md has it, and prints TAP: refusals.py TOOL SHIM SIM PROGRAMS SOURCE.

PROGRAMS is the folder of native.c's, fake_python.c's and its debug build's programs, SOURCE the source tree. What the system and a
copy of the process are refused for is tested in tests/unit/refusals; here its words are taken from the source.
"""
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile

import readable

tool, shim, sim, programs, source = map(os.path.abspath, sys.argv[1:6])
work = tempfile.TemporaryDirectory(prefix="gm-refusals-")
said = set()
number = failures = 0


def test(name, body):
    global number, failures
    number += 1
    try:
        body()
        print(f"ok {number} - {name}", flush=True)
    except Exception as error:  # noqa: BLE001, every failure is a result
        failures += 1
        print(f"not ok {number} - {name}\n# {' '.join(f'{type(error).__name__}: {error}'.split())[:2000]}", flush=True)


class Program:
    """A program under the shim, which waits for its standard input to end."""

    def __init__(self, name, *arguments, preload=shim, **settings):
        self.file = os.path.join(work.name, f"{number}.gmt")
        environment = {k: v for k, v in os.environ.items() if not k.startswith("GPUMEMTRACE_")}
        environment.update(LD_PRELOAD=preload, LD_LIBRARY_PATH=sim, GPUMEMTRACE_OUT=self.file, **settings)
        self.process = subprocess.Popen([os.path.join(programs, name), *arguments], env=environment, cwd=work.name, text=True,
                                        preexec_fn=readable.by_all, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE)
        self.pid = self.process.pid
        assert self.process.stdout.readline(), self.process.stderr.read()

    def end(self):
        self.process.stdin.close()
        self.process.wait()
        return self.process.stderr.read()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()


def note(text, **names):
    """Keeps a message, with its numbers and paths replaced by what stands for them."""
    for name, value in sorted(names.items(), key=lambda one: -len(str(one[1]))):
        text = text.replace(str(value), name)
    said.add(re.sub(r"CPython 3\.\d+", "CPython 3.N", " ".join(text.split())))


def refused(*arguments, status=3, user=None, **names):
    who = {"user": user, "group": user, "extra_groups": []} if user else {}
    done = subprocess.run([tool, "holders", *map(str, arguments)], capture_output=True, text=True, check=False, **who)
    assert done.returncode == status and not done.stdout, (done.returncode, done.stdout, done.stderr)
    note(re.sub(r"^gpumem-report: ", "", done.stderr).replace("\nTry 'gpumem-report holders --help'.", ""), **names)


def python(way):
    with Program("holders_fake_debug" if way == "12 debug" else "holders_fake_python", way) as program:
        refused(program.pid)


def ended():
    copy = os.path.join(work.name, "copy.gmt")
    with Program("holders_native", copy) as program:
        file, pid = program.file, program.pid
    refused(file, PID=pid, FILE=file)
    refused(copy, PID=pid, FILE=copy)
    refused(pid, PID=pid)
    program = Program("holders_native")
    program.process.send_signal(signal.SIGKILL)
    program.end()
    refused(program.file, PID=program.pid, FILE=program.file)


def others():
    with subprocess.Popen(["sleep", "100"]) as sleeper:
        refused(sleeper.pid, PID=sleeper.pid)
        sleeper.kill()
    if os.geteuid() != 0:
        note("process PID belongs to another user: only that user or root may read its memory")
        note("process PID belongs to someone else; name its file")
        return
    with Program("holders_native") as program:
        os.chmod(work.name, 0o755)
        os.chmod(program.file, 0o644)
        refused(program.file, user=65534, PID=program.pid)
        refused(program.pid, user=65534, PID=program.pid)


def cores():
    core = os.path.join(work.name, "core")
    head = struct.pack("<4sBBBB8xHHIQQQIHHHHHH", b"\x7fELF", 2, 1, 1, 0, 4, 62, 1, 0, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    # one note: NT_PRPSINFO of another process
    info = struct.pack("<8xQIIIIII16s80s", 0, 0, 0, 4190000, 0, 0, 0, b"", b"")
    text = struct.pack("<III8s", 5, len(info), 3, b"CORE\0\0\0\0") + info
    segment = struct.pack("<IIQQQQQQ", 4, 0, 120, 0, 0, len(text), 0, 4)
    with Program("holders_native") as program:
        for content in (head[:4] + b"\1" + head[5:] + bytes(64), head + bytes(8), head + segment + text):
            with open(core, "wb") as file:
                file.write(content)
            refused(core, program.file, CORE=core, FILE=program.file, OTHER=4190000, PID=program.pid)
        refused(core, status=2, CORE=core)


def copies():
    """The copy that GPUMEMTRACE_HOLDERS asks for is not made: a line on stderr says so."""
    lonely = shutil.copy(shim, os.path.join(work.name, "lonely.so"))
    with Program("holders_native", preload=lonely, PATH="/nowhere", GPUMEMTRACE_HOLDERS="grow:1KiB") as program:
        note_lines(program)
    os.mkdir(os.path.join(work.name, f"{number}.gmt.holders1.new"))
    with Program("holders_native", GPUMEMTRACE_HOLDERS="grow:1KiB") as program:
        note_lines(program)


def note_lines(program):
    lines = [line for line in program.end().splitlines() if "GPUMEMTRACE_HOLDERS: " in line]
    assert lines, "nothing was said"
    note(re.sub(r".*GPUMEMTRACE_HOLDERS: ", "", lines[0]), FILE=program.file)


def texts_of(path, pattern):
    """The texts of a source file that `pattern` finds, with what stands for their numbers."""
    with open(os.path.join(source, path), encoding="utf-8") as file:
        text = re.sub(r'"\s*\n\s*"', "", file.read())
    return {found.replace("process %d", "process PID").replace("%d", "N") for found in re.findall(pattern, text)}


def documented():
    unit = texts_of("src/holders/read_refusal.c", r'bytes,\s*"([^"]*)"')
    unit |= {"no copy of the process is made: " + text
             for text in texts_of("src/recorder/process/copy_refusal.c", r'(?:return|\?) "([^"]*)"')}
    with open(os.path.join(source, "docs/holders.md"), encoding="utf-8") as file:
        chapter = file.read().split("## Refusals")[1].split("\n## ")[0]
    rows = set(re.findall(r"^\| `([^`]*)` \|", chapter, re.M))
    assert len(unit) == 11, unit
    assert rows == said | unit, f"documents only: {rows - said - unit}; tests only: {(said | unit) - rows}"


for way in ("7 ", "12 debug", "12 empty", "12 ending", "12 strange", "13 silent", "13 free-threaded", "13 other"):
    test(f"a CPython that looks like 3.{way}", lambda: python(way))
test("a process that has ended", ended)
test("a process of no trace, a process of another user", others)
test("core files", cores)
test("no copy is made", copies)
test("docs/holders.md has these words and no others", documented)
print(f"1..{number}")
sys.exit(failures > 0)

"""Looks for planted holders with `gpumem-report holders` and prints TAP: holders.py PYTHON TOOL SHIM SIM NATIVE KEEPER.

PYTHON is the CPython that the planted programs run with. What each block is held by is known from the program,
never from the tool: planted.py and changing.py say it.
"""

import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile

import readable

python, tool, shim, sim, native, keeper = sys.argv[1], *map(os.path.abspath, sys.argv[2:7])
here = os.path.dirname(os.path.abspath(__file__))
work = tempfile.TemporaryDirectory(prefix="gm-holders-")
number = failures = 0

# What may hold a block of changing.py of so many KiB: words of which a complete chain has one. While a block is
# made and freed, the frames of its methods and of their caller hold it.
FRAMES = ("frame change", "frame __init__", "frame __del__")
ALLOWED = {1: ("steady",), 2: ("in_list", *FRAMES), 3: ("in_dict", *FRAMES), 4: ("in_queue", *FRAMES),
           5: ("frame in_frame", *FRAMES), 6: ("carrier", *FRAMES), 7: ("unreachable cycle", *FRAMES)}


def test(name, body):
    global number, failures
    number += 1
    try:
        body()
        print(f"ok {number} - {name}", flush=True)
    except Exception as error:  # noqa: BLE001, every failure is a result
        failures += 1
        text = " ".join(f"{type(error).__name__}: {error}".split())
        print(f"not ok {number} - {name}\n# {text[:2000]}", flush=True)


class Program:
    """A planted program under the shim, which waits for its standard input to end."""

    def __init__(self, name, *arguments, **settings):
        self.file = os.path.join(work.name, f"{name}-{number}.gmt")
        environment = {k: v for k, v in os.environ.items() if not k.startswith("GPUMEMTRACE_")}
        environment.update(LD_PRELOAD=shim, LD_LIBRARY_PATH=sim, GPUMEMTRACE_OUT=self.file, GPUMEMTRACE_QUIET="1", KEEPER=keeper,
                           **{"GPUMEMTRACE_" + key: value for key, value in settings.items()})
        command = [native] if name == "native" else [python, "-B", os.path.join(here, name + ".py")]
        self.process = subprocess.Popen([*command, *arguments],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env=environment, cwd=work.name, preexec_fn=readable.by_all)
        self.said = self.process.stdout.readline()
        assert self.said, f"{name} ended before it was ready"

    def say(self, word):
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()


def run(*arguments, command="holders"):
    return subprocess.run([tool, command, "--no-symbols", *map(str, arguments)], capture_output=True, text=True,
                          check=False)


def document(*arguments, command="holders"):
    done = run("--json", *arguments, command=command)
    assert done.returncode == 0, f"exit status {done.returncode}: {done.stderr}"
    return json.loads(done.stdout)


def functions_of(doc, holder):
    """The Python functions that allocated a holder's blocks."""
    site = next(site for site in doc["sites"] if site["id"] == holder["site"])
    return [frame["function"] or "" for frame in site["stack"] if frame["kind"] == "python"]


def belongs(functions, kind, made_in):
    """True of the planting function's own blocks. To 3.10 a frame has no qualified name."""
    return any(function == made_in or function.startswith(kind + ".<locals>.") for function in functions)


def in_order(words, chain):
    """Each word is in a step, a later one in a later step or behind the earlier one."""
    text, at = " \u2192 ".join(chain), 0
    for word in words:
        at = text.find(word, at)
        if at < 0:
            return False
        at += len(word)
    return True


def check_kind(name, kind):
    found = [holder for holder in doc["holders"] if belongs(functions_of(doc, holder), name, kind["made_in"])]
    assert found, "no holder"
    assert sum(holder["blocks"] for holder in found) == kind["blocks"], (found, kind["blocks"])
    assert all(holder["bytes"] == holder["blocks"] * bytes_each for holder in found), found
    for holder in found:
        chain = holder["chain"]
        assert holder["garbage"] == kind["garbage"], holder
        assert holder["complete"] == (not kind["note"]), holder
        assert not kind["note"] or kind["note"] in holder["note"], holder
        assert in_order(kind["words"], chain), holder
        assert not kind["any"] or any(word in " ".join(chain) for word in kind["any"]), holder
        assert chain[-1] == "block" if kind["words"] else not chain, holder


def live_bytes(program):
    return sum(row["current_bytes"] for row in document(program.file, command="summary")["usage"])


if subprocess.run([python, "-c", "import torch"], capture_output=True, check=False).returncode == 0:
    with Program("planted_torch") as program:
        told = json.loads(program.said)
        bytes_each = told["bytes"]
        doc = document(program.process.pid)
        for name, kind in told["kinds"].items():
            test(name, lambda: check_kind(name, kind))

with Program("planted") as planted:
    told = json.loads(planted.said)
    bytes_each = told["bytes"]
    doc = document(planted.process.pid)

    for name, kind in told["kinds"].items():
        if name == "main_local":
            continue
        test(name, lambda: check_kind(name, kind))

    def of_main():
        [holder] = [holder for holder in doc["holders"] if "local kept_by_main" in " ".join(holder["chain"])]
        assert in_order(["thread MainThread", "frame main", "local kept_by_main", "Buffer.pointer"], holder["chain"])
        assert holder["complete"] and holder["blocks"] == 1, holder

    def all_blocks():
        assert sum(holder["blocks"] for holder in doc["holders"]) == sum(
            kind["blocks"] for kind in told["kinds"].values())
        assert doc["holders_taken"]["when"] == "now" and doc["holders_taken"]["whole"], doc["holders_taken"]

    def same_by_file():
        again = document(planted.file)
        assert again["holders"] == doc["holders"]

    def prints_text():
        done = run("--top", "100", planted.process.pid)
        assert done.returncode == 0, done.stderr
        text = " ".join(done.stdout.split())
        assert "module __main__ \u2192 trainer \u2192 Trainer.losses \u2192 list (40 entries) \u2192" in text, text
        assert "gc.collect() would free" in text, text

    def collector():
        garbage = sum(holder["bytes"] for holder in doc["holders"] if holder["garbage"])
        before = live_bytes(planted)
        assert planted.say("collect").strip() == "collected"
        assert garbage and before - live_bytes(planted) == garbage, (before, live_bytes(planted), garbage)
        assert not any(holder["garbage"] for holder in document(planted.file)["holders"])

    test("a local variable of main", of_main)
    test("every live block has one holder", all_blocks)
    test("the process's file names it as its number does", same_by_file)
    test("chains as text", prints_text)
    test("gc.collect() frees exactly what is called garbage", collector)


def core_of_debugger(program):
    done = subprocess.run(["gcore", "-o", os.path.join(work.name, "core"), str(program.process.pid)],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"gcore: {done.returncode} {done.stdout} {done.stderr}"
    return os.path.join(work.name, f"core.{program.process.pid}")


def core_of_kernel(program):
    resource.prlimit(program.process.pid, resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    os.kill(program.process.pid, signal.SIGABRT)
    program.process.wait()
    return next(path for path in (os.path.join(work.name, "core"), os.path.join(work.name, f"core.{program.process.pid}"))
                if os.path.exists(path))


def settled(program):
    """The document of a program whose threads have all come to where they wait: two in a row are equal."""
    before = document(program.process.pid)
    for _ in range(100):
        now = document(program.process.pid)
        if now["holders"] == before["holders"]:
            return now
        before = now
    raise AssertionError("the program's holders go on changing")


def core_file(make):
    with Program("planted") as program:
        told = json.loads(program.said)
        live = settled(program)
        core = make(program)
    doc = document(core, program.file)
    assert doc["holders_taken"]["when"] == "core"
    differ = [[holder for holder in one["holders"] if holder not in other["holders"]][:2]
              for one, other in ((live, doc), (doc, live))]
    assert doc["holders"] == live["holders"], differ
    assert sum(holder["blocks"] for holder in live["holders"]) == sum(
        kind["blocks"] for kind in told["kinds"].values())
    with open(core, "r+b") as file:
        file.truncate(1 << 16)
    run(core, program.file)     # whatever it says, it ends


def heavy_change():
    with Program("changing") as program:
        held = steady = searches = 0
        while searches < 8 or held == steady and searches < 64:
            searches += 1
            doc = document(program.process.pid)
            for holder in doc["holders"]:
                kib = holder["bytes"] // holder["blocks"] >> 10
                chain = " ".join(holder["chain"])
                if holder["complete"]:
                    held += holder["blocks"]
                    assert any(word in chain for word in ALLOWED[kib]), (kib, holder)
                    assert not holder["garbage"] or kib == 7, (kib, holder)
                if kib == 1:
                    steady += holder["blocks"] if holder["complete"] and "steady" in chain else 0
        assert steady == searches * 40, f"{steady} of {searches * 40} blocks that stay were named"
        assert held > steady, "nothing of what changes was named"


def native_program():
    expected = {1: ("global one_global (holders_native)",), 2: ("global table_of_four+24 (holders_native)",),
                3: ("global list_head (holders_native)", "heap object of 24 bytes, word at +8"),
                4: ("global list_head (holders_native)", "heap object of 24 bytes, word at +0",
                    "heap object of 24 bytes, word at +8"),
                5: ("global array_on_heap (holders_native)", "heap object of 808 bytes, word at +400"),
                8: ("global array_on_heap (holders_native)", "heap object of 808 bytes, word at +408"),
                # its own mapping: 8 MiB and a page, less two words
                9: ("global mapped_by_malloc (holders_native)", "heap object of 8392688 bytes, word at +8000"),
                10: ("global of_thread (holders_native)", "heap object of 24 bytes, word at +8"),
                11: ("global list_head (holders_native)", "heap objects of 24 bytes, word at +0 of each",
                     "heap object of 24 bytes, word at +8")}
    with Program("native") as program:
        doc = document(program.process.pid)
        chains = {holder["bytes"] >> 10: holder for holder in doc["holders"]}
        assert doc["holders_taken"]["python"] is None and sorted(chains) == list(range(1, 12)), doc["holders"]
        for kib, steps in expected.items():
            assert tuple(chains[kib]["chain"]) == (*steps, "block") and chains[kib]["complete"], chains[kib]
        # 7 is held by a page beside the program's data, which the kernel shows as one mapping
        for kib in 6, 7:
            assert chains[kib]["chain"] == [] and not chains[kib]["complete"], chains[kib]


def captured(moment, setting):
    with Program("captured", moment, "wait", HOLDERS=setting, SIGNAL="USR1") as program:
        doc = document(program.file, command="summary")
        [taken, holders] = [doc["holders_taken"], doc["holders"]]
        assert taken["when"] == moment and taken["whole"] and taken["time_s"] >= 0, taken
        assert sum(holder["blocks"] for holder in holders) == 6, holders
        kept = [holder for holder in holders if in_order(["module __main__", "kept", "list (", "Buffer.pointer"],
                                                         holder["chain"])]
        # while the last one is made it belongs to its own frame
        assert sum(holder["blocks"] for holder in kept) == (5 if moment == "grow" else 6), holders
        assert all(holder["complete"] and not holder["garbage"] for holder in holders), holders
        live = document(program.file)
        assert live["holders_taken"]["when"] == "now" and sum(h["blocks"] for h in live["holders"]) == 1, live["holders"]
    assert program.process.returncode == 0, "the program saw the copy"
    assert document(program.file)["holders"] == holders    # of a process that has ended
    assert not [name for name in os.listdir(work.name) if name.endswith(".new")]
    if moment == "oom":
        done = run(program.file, command="oom")
        assert done.returncode == 0 and "module __main__ \u2192 kept" in " ".join(done.stdout.split()), done.stdout
    assert "module __main__ \u2192 kept" in " ".join(run(program.file, command="leaks").stdout.split())
    assert "held by module __main__ \u2192 kept" in run("--once", program.file, command="top").stdout


def advice_about_leak():
    for settings, expected in (({"HOLDERS": "mark"}, "what kept .* in 40 blocks at .*: module __main__ \u2192 kept \u2192 list"),
                               ({}, "look for what keeps a reference to it")):
        with Program("captured", "leak", "wait", **settings) as program:
            pass
        [leak] = [finding for finding in document(program.file, command="summary")["findings"] if finding["id"] == "leak.grow"]
        assert re.match(expected, leak["advice"][0]), leak


def not_captured():
    with Program("captured", "oom", "wait") as program:
        doc = document(program.file, command="summary")
        assert doc["holders"] == [] and doc["holders_taken"] is None
        done = run(program.file, command="oom")
        assert f"gpumem-report holders {program.process.pid}" in " ".join(done.stdout.split()), done.stdout


for moment, setting in (("oom", "oom"), ("mark", "mark"), ("signal", "signal"), ("grow", "grow:6MiB")):
    test(f"captured inside: {setting}", lambda: captured(moment, setting))
test("global variables of a native program", native_program)
test("a leak's advice names the holder that was found", advice_about_leak)
test("without the setting the report says how to find holders", not_captured)
test("a process that changes everything meanwhile: the right chain or none", heavy_change)


if shutil.which("gcore"):
    test("a core file of the debugger", lambda: core_file(core_of_debugger))
with open("/proc/sys/kernel/core_pattern", encoding="utf-8") as pattern:
    if pattern.read().strip() == "core":
        test("a core file of the kernel", lambda: core_file(core_of_kernel))
print(f"1..{number}")
sys.exit(failures > 0)

"""Damaged files and damaged command lines for the report tool itself: it may say what it likes, but ends in
time, by itself and with a status of its own. Arguments: the tool, a real file."""
import os
import random
import subprocess
import sys
import tempfile

TOOL, SEED = os.path.abspath(sys.argv[1]), open(sys.argv[2], "rb").read()
COMMANDS = [["summary"], ["summary", "--json"], ["leaks", "--all"], ["fragmentation"], ["oom"],
            ["sites", "--sort", "peak"], ["timeline"], ["check"], ["check", "--leaks", "grow"]]
WORDS = ["--json", "--top", "--top=-1", "--device", "99999999999999999999", "--kind", "--sort", "\\xff", "",
         "--suppressions", "/dev/null", "--", "-", "--level", "%s%n", "summary", "diff", "export", "--format",
         "sqlite", "-o", "/nowhere/x", "--color", "always", "-q", "--min-bytes", "1e400GiB", "--warmup", "-9"]
HEADER = 4096
random.seed(20261128)


def damaged():
    data = bytearray(SEED)
    kind = random.randrange(4)
    if kind == 0:
        del data[random.randrange(len(data)):]
    for _ in range(random.choice([1, 4, 32])):
        at = random.randrange(HEADER if kind < 2 else len(data))
        if at < len(data):
            data[at] = random.choice([0, 0xFF, 0x80, random.randrange(256)])
    return data


def run(arguments, good):
    done = subprocess.run([TOOL, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, timeout=60, cwd=work)
    assert done.returncode in good, (arguments, done.returncode, done.stderr[-300:])


with tempfile.TemporaryDirectory() as work:
    path = os.path.join(work, "damaged.gmt")
    for i in range(150):
        with open(path, "wb") as file:
            file.write(damaged())
        try:
            run([*COMMANDS[i % len(COMMANDS)], "--no-symbols", path], range(6))
        except (AssertionError, subprocess.TimeoutExpired):
            kept = os.path.join(os.environ.get("TMPDIR", "/tmp"), "gpumemtrace-damaged.gmt")
            os.replace(path, kept)
            print("kept as", kept)
            raise
    with open(path, "wb") as file:
        file.write(SEED)
    for i in range(150):
        words = [random.choice(WORDS + [path]) for _ in range(random.randrange(6))]
        run(words, range(6))
    print("150 damaged files, 150 command lines")

"""`top` as people and scripts see it: under tmux, in a pipe, and on a process that runs.

top.py [--accept] TOOL MAKE_FILES SHIM SIM prints TAP; --accept writes the expected screens anew: look at
the difference before it is committed. Waits are for what the screen shows, never for time.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

accept = sys.argv[1] == "--accept"
tool, make_files, shim, sim = (os.path.abspath(path) for path in sys.argv[1 + accept:5 + accept])
here = os.path.dirname(os.path.abspath(__file__))
number = failures = 0
LOOKS = 5000  # at a terminal, until it is given up

# A program on the simulated GPU: allocates as it is told on its standard input.
PROGRAM = """
import ctypes, sys
cuda = ctypes.CDLL("libcudart.so.13")
def hold(mib):
    pointer = ctypes.c_void_p()
    assert cuda.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(mib << 20)) == 0
    print("held", flush=True)
hold(7)
for line in sys.stdin:
    hold(int(line))
"""


def test(name, body):
    global number, failures
    number += 1
    try:
        said = body()
        print(f"ok {number} - {name}" + (f" # SKIP {said}" if said else ""))
    except Exception as error:  # noqa: BLE001, every failure is a result
        failures += 1
        print(f"not ok {number} - {name}")
        for line in f"{type(error).__name__}: {error}".splitlines()[:60]:
            print(f"# {line}")


def trimmed(text):
    return "".join(line.rstrip() + "\n" for line in text.rstrip().splitlines())


def expected(name):
    with open(os.path.join(here, "expected", name + ".txt"), encoding="utf-8") as file:
        return file.read()


def expect(name, text):
    text = trimmed(text)
    if accept:
        with open(os.path.join(here, "expected", name + ".txt"), "w", encoding="utf-8") as file:
            file.write(text)
    wanted = expected(name)
    assert text == wanted, f"{name}: the screen is\n{text}\nand should be\n{wanted}"


def once(*arguments, columns=100, status=0):
    done = subprocess.run([tool, "top", "--once", *arguments], capture_output=True, text=True,
                          env=os.environ | {"COLUMNS": str(columns)}, check=False)
    assert done.returncode == status, f"exit status {done.returncode}: {done.stderr}"
    return done.stdout if status == 0 else done.stderr


class Terminal:
    """A tmux server of its own with one window that runs `top`."""

    servers = 0

    def __init__(self, arguments, columns, rows):
        Terminal.servers += 1
        self.socket = os.path.join(os.getcwd(), f"tmux{Terminal.servers}")
        command = " ".join([tool, "top", *arguments])
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", str(columns), "-y", str(rows),
                  f"{command} 2> said; echo ended $? > status; exec cat")

    def tmux(self, *arguments):
        return subprocess.run(["tmux", "-S", self.socket, *arguments], check=True,
                              capture_output=True, text=True).stdout

    def screen(self):
        return self.tmux("capture-pane", "-p")

    def wait(self, pattern):
        """The screen once it shows the pattern; bounded by the number of looks."""
        for _ in range(LOOKS):
            screen = self.screen()
            if re.search(pattern, screen, re.M):
                return screen
        raise AssertionError(f"{pattern} did not appear:\n{screen}")

    def expect(self, name, pattern):
        """Waits for the whole expected screen: a terminal draws from the top, so what a look finds may
        have the new heading over the old rows. The pattern says when a screen is the one to accept."""
        screen = self.wait(pattern)
        for _ in range(LOOKS):
            before, screen = screen, self.screen()
            if screen == before if accept else trimmed(screen) == expected(name):
                break
        expect(name, screen)

    def keys(self, *keys):
        self.tmux("send-keys", *keys)

    def close(self):
        self.tmux("kill-server")


def scripts():
    expect("once", once("torch.gmt"))
    expect("once-sorted", once("--sort", "total", "--top", "2", "--level", "driver", "leaks.gmt"))
    expect("once-narrow", once("leaks.gmt", columns=40))
    assert "growth" in once("--sort", "size", "leaks.gmt", status=2)
    assert "foreign.gmt" in once("foreign.gmt", status=3)


def several():
    expect("once-job", once("--top", "1", "rank1.gmt", "rank0.gmt"))
    assert once("rank1.gmt", "rank0.gmt") == once("rank0.gmt", "rank1.gmt")
    document = json.loads(once("--json", "rank0.gmt", "rank1.gmt"))
    assert [run["process"]["rank"] for run in document["runs"]] == [0, 1]
    done = subprocess.run([tool, "top", "--once", "2147483", "rank0.gmt", "rank1.gmt"], capture_output=True,
                          text=True, check=False)
    assert done.returncode == 3 and "no process 2147483" in done.stderr and "All 2 processes" in done.stdout, done


def several_on_a_terminal():
    terminal = Terminal(["rank1.gmt", "rank0.gmt.old1", "rank0.gmt", "foreign.gmt"], 100, 16)
    try:
        terminal.wait("calls, 0 a second")
        terminal.keys("Space")
        terminal.expect("screen-job", "paused")
        terminal.keys("Space", "n")
        terminal.wait(r"\Atrain  pid 5000")
        terminal.keys("t", "n")
        terminal.wait(r"\Atrain  pid 5000(?s:.*768.0 MiB.*by total$)")
        terminal.keys("n")
        terminal.wait(r"\Atrain  pid 5001(?s:.*by total$)")
        terminal.keys("n")
        terminal.wait(r"\A2 processes: 2 exit")
        os.remove("rank1.gmt")
        terminal.wait(r"1 exit, 1 gone(?s:.*) 5001  gone")
        os.remove("rank0.gmt")
        os.remove("rank0.gmt.old1")
        for _ in range(LOOKS):
            terminal.screen()
            if os.path.exists("status") and os.path.getsize("status"):
                break
        with open("said", encoding="utf-8") as file:
            said = file.read()
        assert "foreign.gmt" in said and "rank" in said, said
        with open("status", encoding="utf-8") as file:
            assert file.read() == "ended 3\n"
    finally:
        terminal.close()
        os.remove("status")


def no_process():
    assert "no process 2147483" in once("2147483", status=3)
    assert "not traced" in once(str(os.getpid()), status=3)


def no_terminal():
    done = subprocess.run([tool, "top", "leaks.gmt"], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, check=False)
    assert done.returncode == 3 and "--once" in done.stderr, done


def keys():
    terminal = Terminal(["leaks.gmt"], 100, 16)
    try:
        terminal.expect("screen", "by live")
        terminal.keys("t")
        terminal.expect("screen-total", "by total")
        terminal.keys("l", "/", "l", "o", "a", "d", "Enter")
        terminal.expect("screen-filter", "with load$")
        terminal.keys("/", "Enter", "d")
        terminal.wait(r"\A(?!.*host pinned)(?s:.*by live$)")
        terminal.keys("Space")
        terminal.wait("paused")
        terminal.keys("h")
        terminal.expect("screen-keys", "count growth from now")
        terminal.keys("h")
        terminal.tmux("resize-window", "-x", "30", "-y", "10")
        terminal.expect("screen-narrow", r"live  site, by live$")
        terminal.keys("q")
        for _ in range(LOOKS):
            terminal.screen()  # a look takes its time, a question to the file system none
            if os.path.exists("status") and os.path.getsize("status"):
                break
        with open("status", encoding="utf-8") as file:
            assert file.read() == "ended 0\n"
    finally:
        terminal.close()


def live():
    environment = os.environ | {"LD_LIBRARY_PATH": sim, "LD_PRELOAD": shim, "GPUMEMTRACE_QUIET": "1",
                                "GPUMEMTRACE_OUT": os.path.join(os.getcwd(), "an odd name")}
    with subprocess.Popen([sys.executable, "-c", PROGRAM], env=environment, text=True,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
        terminal = None
        try:
            assert program.stdout.readline() == "held\n"
            said = once(str(program.pid))
            assert re.search(r"^python\S*  pid %d  running" % program.pid, said), said
            assert "7.00 MiB" in said, said
            terminal = Terminal([str(program.pid)], 100, 16)
            terminal.wait(r"device 0 driver +7\.00 MiB")
            program.stdin.write("16\n")
            program.stdin.flush()
            terminal.wait(r"device 0 driver +23\.00 MiB")
            terminal.wait(r"^ +16\.00 MiB +\+16\.00 MiB .*hold \(<string>:6")
            program.send_signal(signal.SIGKILL)
            terminal.wait(r"pid %d  killed" % program.pid)
        finally:
            program.kill()
            if terminal:
                terminal.close()


with tempfile.TemporaryDirectory() as directory:
    os.chdir(directory)
    os.environ["LC_ALL"] = "C.UTF-8"
    os.environ.pop("DEBUGINFOD_URLS", None)
    subprocess.run([make_files, directory], check=True)
    test("scripts", scripts)
    test("several", several)
    test("no_process", no_process)
    test("no_terminal", no_terminal)
    for body in (several_on_a_terminal, keys, live):
        test(body.__name__,
             body if shutil.which("tmux") else lambda: "tmux is not installed")
    os.chdir("/")
print(f"1..{number}")
sys.exit(failures != 0)

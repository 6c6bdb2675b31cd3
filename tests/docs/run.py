"""Runs every command of the documents, on the simulated GPU, in a folder as a reader would have it.

run.py SOURCE BUILD [DOCUMENT...] prints TAP: a test for the prepared folder, one for each document.

* ```sh blocks are run by `bash -e`; a line that ends in `# exit status N` must end so.
* ```console blocks are commands after `$ ` and what they print. A line `...` stands for any lines and `...`
  inside a line for any text; a number, a size, a time and a path match any other.
* A block with a file's name behind its language (```cpp app.cpp) is written to that file.
* A block with a line `# Not run by the tests: REASON` is left out and counted.
* Anything that looks like a command and stands in no such block fails.
"""

import glob
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

source, build = (os.path.abspath(path) for path in sys.argv[1:3])
here = os.path.dirname(os.path.abspath(__file__))
SIM = os.path.join(build, "tests", "sim")
BLOCK_S = 120  # a block that takes longer hangs
OPTIONAL = ("c++", "cmake", "ctest", "jq", "pytest", "sqlite3", "zstd")
NOT_RUN = re.compile(r"^\s*# Not run by the tests: (.+)", re.M)
COMMAND = re.compile(r"^(\$ |(\w+=\S+ )*(gpumem-report|gpumemtrace run|meson|ninja|python3?|pytest|LD_PRELOAD=\S+)\s)")
VARIES = [  # what may differ between the document and the run, longest first
    (re.compile(r"(?<![\w.])/[\w./-]+"), "PATH"),
    (re.compile(r"\b\d[\d,]*(\.\d+)? ?([KMGT]iB|B|%|ms|s|min|h)(?!\w)"), "FIGURE"),
    (re.compile(r"\b0x[0-9a-f]+\b"), "ADDRESS"),
    (re.compile(r"(?<![\w:])\d[\d,]*(\.\d+)?(?!\w)"), "NUMBER"),
]


class Block:
    def __init__(self, document, line, language, name, text):
        self.where = f"{document}:{line}"
        self.language, self.name, self.text = language, name, text


def blocks(document, text):
    """The fenced blocks, and as blocks of no language the commands that are only indented."""
    found, inside = [], None
    for number, line in enumerate(text.splitlines(), 1):
        fence = re.match(r"^\s*```(.*)$", line)
        if fence and inside is None:
            words = fence[1].split()
            inside = Block(document, number, words[0] if words else "", words[1] if words[1:] else "", "")
        elif fence:
            found.append(inside)
            inside = None
        elif inside is not None:
            inside.text += line + "\n"
        elif line.startswith("    ") and COMMAND.match(line.strip()):
            found.append(Block(document, number, "", "", line.strip() + "\n"))
    assert inside is None, f"{document}: a block is not closed"
    return found


def alike(text):
    text = text.rstrip()
    for pattern, word in VARIES:
        text = pattern.sub(word, text)
    return re.sub(r"\s+", " ", text).strip()


def matches(shown, printed):
    """Whether what was printed is what the document shows, `...` standing for anything."""
    pattern = ""
    for line in shown:
        if line.strip() == "...":
            pattern += r"(?:.*\n)*?"
        else:
            pattern += ".*".join(re.escape(part) for part in alike(line).split("...")) + r" ?\n"
    lines = [alike(line) for line in printed]
    return re.fullmatch(pattern, "".join(line + "\n" for line in lines)) is not None


def bash(script, folder, environment):
    """Status and output of a script; everything that it started ends with it."""
    with subprocess.Popen(["bash", "-c", script], cwd=folder, env=environment, text=True,
                          errors="replace", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, start_new_session=True) as process:
        try:
            said = process.communicate(timeout=BLOCK_S)[0]
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
    return process.returncode, said


def run_commands(block, folder, environment):
    script = "set -e\n"
    for line in block.text.splitlines():
        status = re.search(r"^(.*\S)\s+# exit status (\d+)", line)
        if status:
            line = (f"set +e\n{status[1]}\nstatus=$?\nset -e\n"
                    f"[ $status -eq {status[2]} ] || {{ echo \"exit status $status, not {status[2]}\"; exit 99; }}")
        script += line + "\n"
    status, said = bash(script, folder, environment)
    tail = "\n".join(said.splitlines()[-40:])
    assert status == 0, f"{block.where}: exit status {status} of\n{block.text}which said at its end\n{tail}"


def console_steps(block):
    """The commands of a console block, each with the lines that it shows."""
    steps = []
    for line in block.text.rstrip().splitlines():
        if line.startswith("$ "):
            steps.append((line[2:], []))
        elif not steps:
            raise AssertionError(f"{block.where}: begins with no command")
        elif steps[-1][0].endswith("\\") and not steps[-1][1]:
            steps[-1] = (steps[-1][0] + "\n" + line.removeprefix("> "), [])
        else:
            steps[-1][1].append(line)
    return steps


def run_console(block, folder, environment):
    """One shell for all commands, so that `echo $?` tells what it would. Without one the status is 0."""
    steps = console_steps(block)
    end = "---- end of a command ----"
    script = "".join(f"{command}\nlast=$?; echo; echo '{end}' $last; (exit $last)\n" for command, _ in steps)
    said = bash(script + "exit 0", folder, environment)[1]
    parts = re.split(re.escape(end) + r" (\d+)\n", said)
    assert len(parts) == 2 * len(steps) + 1, f"{block.where}: not run to its end:\n{said}"
    for index, (command, shown) in enumerate(steps):
        printed, status = parts[2 * index].rstrip("\n").splitlines(), parts[2 * index + 1]
        told = steps[index + 1:] and steps[index + 1][0] == "echo $?"
        exact = command == "echo $?"
        assert told or status == "0", f"{block.where}: exit status {status} of {command}\n" + "\n".join(printed)
        assert not (exact or shown) or (shown == printed if exact else matches(shown, printed)), (
            f"{block.where}: `{command}` shows\n" + "\n".join(shown) + "\nand prints\n" + "\n".join(printed))


def missing(block, environment):
    """Why a block cannot be run on this machine: a program that is not here. None if it can."""
    for line in block.text.splitlines():
        word = re.match(r"^(?:\$ )?(?:\w+=\S+ )*([\w+.-]+)", line)
        if word and word[1] in OPTIONAL and not shutil.which(word[1], path=environment["PATH"]):
            return f"no {word[1]} on this machine"
    if "gpumem-report html" in block.text and "NO_PAGE" in environment:
        return "this build has no page (npm was not at hand)"
    return None


def run_document(document, prepared, environment):
    """Runs a document's blocks one after the other in a copy of the folder; counts (run, left out)."""
    with open(os.path.join(source, document), encoding="utf-8") as file:
        found = blocks(document, file.read())
    ran, left_out = 0, []
    with tempfile.TemporaryDirectory() as directory:
        folder = os.path.join(directory, "reader")
        shutil.copytree(prepared, folder, symlinks=True)
        environment = environment | {"SCRATCH": os.path.join(folder, "scratch"), "HOME": folder}
        for block in found:
            told = NOT_RUN.search(block.text)
            is_run = block.language in ("sh", "console") and not block.name
            reason = told[1] if told else missing(block, environment) if is_run else None
            if reason:
                left_out.append(f"{block.where}: {reason}")
            elif block.name:
                with open(os.path.join(folder, block.name), "w", encoding="utf-8") as file:
                    file.write(block.text)
            elif block.language == "sh":
                run_commands(block, folder, environment)
                ran += 1
            elif block.language == "console":
                run_console(block, folder, environment)
                ran += 1
            else:
                for line in block.text.splitlines():
                    assert not COMMAND.match(line), f"{block.where}: a command that no test runs: {line}"
    return ran, left_out


def main():
    names = sys.argv[3:] or sorted(
        os.path.relpath(path, source)
        for pattern in ("*.md", "docs/**/*.md", "python/*.md", "examples/*/*.md", "packaging/*.md")
        for path in glob.glob(os.path.join(source, pattern), recursive=True))
    number = failures = commands = skipped = 0
    with tempfile.TemporaryDirectory() as directory:
        environment = dict(os.environ) | {"LC_ALL": "C.UTF-8", "COLUMNS": "100", "GPUMEMTRACE_QUIET": "1"}
        for name in ("DEBUGINFOD_URLS", "LD_PRELOAD", "PYTHONPATH"):
            environment.pop(name, None)
        prepared = os.path.join(directory, "prepared")
        done = subprocess.run(["bash", os.path.join(here, "prepare.sh"), source, build, prepared],
                              env=environment, capture_output=True, text=True, check=False)
        number += 1
        print(f"{'not ' if done.returncode else ''}ok 1 - the reader's folder is prepared")
        if done.returncode:
            print("".join(f"# {line}\n" for line in (done.stdout + done.stderr).splitlines()) + "1..1")
            return 1
        tools = os.path.join(prepared, ".tools")
        environment |= {"PATH": os.path.join(tools, "bin") + ":" + os.environ["PATH"],
                        "LD_LIBRARY_PATH": os.path.join(tools, "lib") + ":" + SIM,
                        "LIBRARY_PATH": os.path.join(tools, "lib") + ":" + SIM, "CPATH": os.path.join(source, "include"),
                        "PYTHONPATH": os.path.join(tools, "python")}
        if not os.path.exists(os.path.join(tools, "has_page")):
            environment["NO_PAGE"] = "1"
        for document in names:
            number += 1
            try:
                ran, left_out = run_document(document, prepared, environment)
                commands += ran
                skipped += len(left_out)
                print(f"ok {number} - {document}: {ran} blocks run, {len(left_out)} not")
                for line in left_out:
                    print(f"# not run, {line}")
            except Exception as error:  # noqa: BLE001, every failure is a result
                failures += 1
                print(f"not ok {number} - {document}")
                for line in f"{type(error).__name__}: {error}".splitlines()[:80]:
                    print(f"# {line}")
    print(f"# {commands} blocks of commands run, {skipped} not run for the reasons above")
    print(f"1..{number}")
    return failures != 0


sys.exit(main())

"""The commands: ``gpumemtrace run`` starts a Python program under the tracer, ``gpumem-report`` is the tool.

``gpumemtrace report``, ``html``, ``leaks`` and ``top`` start the tool, too. It takes the place of this process, so its
exit status is the command's.
"""
import argparse
import os
import subprocess
import sys
from typing import List, Optional

from gpumemtrace import _files

# Settings of the tracer that run takes as options: --stacks native is GPUMEMTRACE_STACKS=native.
SETTINGS = {
    "backend": "where events come from: preload or cupti",
    "stacks": "what a stack holds: full, native, python or off",
    "depth": "frames kept of a stack, 1 to 256",
    "torch": "record PyTorch's blocks: auto or off",
    "events": "history: ring, off or all",
    "max-file": "the most that the file may take, like 256MiB",
    "signal": "make a mark and a copy at this signal, like USR1",
    "ranges": "record named ranges: on or off",
    "mark": "each end of an NVTX range of this name is a mark",
    "capacity": "pretend that each device has only this much memory, like 16GiB",
    "fail": "let allocations fail: N, N+ or p=0.01,seed=7",
}

# What is the tool's own: the command here, the tool's, and what it does.
TOOL = {
    "report": ("summary", "print where the memory went, from a recorded file"),
    "html": ("html", "make the page of a recorded file"),
    "leaks": ("leaks", "print what leaks, with stacks"),
    "top": ("top", "watch a running process that is traced"),
}


class _Version(argparse.Action):
    """The tool's: the package, the tracer and the tool are of one version."""

    def __call__(self, parser, namespace, values, option_string=None):
        done = subprocess.run(_report_command() + ["--version"], stdout=subprocess.PIPE, universal_newlines=True)
        print("gpumemtrace", done.stdout.split()[-1])
        sys.exit(done.returncode)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="gpumemtrace", description="Records GPU memory of a Python program.")
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    run = commands.add_parser(
        "run", usage="gpumemtrace run [options] SCRIPT|-m MODULE [args]",
        help="run a script or module under the tracer and print its summary",
        description="Runs a script or module under the tracer and prints its summary. The exit status is the "
                    "program's own; with --check that of the gates if the program succeeded.")
    run.add_argument("-o", dest="out", metavar="OUT", help="the file to write (gpumemtrace.PID.gmt)")
    run.add_argument("--check", metavar="GATES",
                     help='options of gpumem-report check in one word: --check "--leaks grow --max-peak 8GiB"')
    run.add_argument("-q", dest="quiet", action="store_true", help="less: only the answer")
    for name, text in SETTINGS.items():
        run.add_argument("--" + name, metavar="VALUE", help=text)
    run.add_argument("-m", dest="module", action="store_true", help="run a module, as python -m does")
    run.add_argument("program", metavar="SCRIPT|MODULE", help="the program")
    run.add_argument("args", nargs=argparse.REMAINDER, help="its arguments")
    for name, (_, text) in TOOL.items():
        commands.add_parser(name, help=text, add_help=False)
    return parser


def _join_check(argv: List[str]) -> List[str]:
    """``--check --no-errors`` as ``--check=--no-errors``: argparse takes no value that looks like an option."""
    for number, word in enumerate(argv):
        if word == "--check" and number + 1 < len(argv):
            return argv[:number] + ["--check=" + argv[number + 1]] + argv[number + 2:]
        before = argv[number - 1] if number > 1 else ""
        value = before.startswith("-") and "=" not in before and before not in ("-q", "-m")
        if number > 0 and not word.startswith("-") and not value:
            break  # the program: what follows is its own
    return argv


def _report_command() -> List[str]:
    try:
        return _files.report_command()
    except FileNotFoundError as error:
        print(f"gpumemtrace: {error}", file=sys.stderr)
        sys.exit(2)


def _start(words: List[str]) -> int:
    command = _report_command() + words
    sys.stdout.flush()
    os.execv(command[0], command)


def main(argv: Optional[List[str]] = None) -> int:
    words = sys.argv[1:] if argv is None else argv
    if words and words[0] in TOOL:
        return _start([TOOL[words[0]][0], *words[1:]])
    parser = _parser()
    asked = parser.parse_args(_join_check(words))
    if asked.command is None:
        parser.print_help()
        return 2
    for name in SETTINGS:
        value = getattr(asked, name.replace("-", "_"))
        if value is not None:
            os.environ["GPUMEMTRACE_" + name.replace("-", "_").upper()] = value
    words = ["run"]
    words += ["-o", asked.out] if asked.out else []
    words += ["--check", asked.check] if asked.check is not None else []
    words += ["-q"] if asked.quiet else []
    program = ["-m", asked.program] if asked.module else [asked.program]
    return _start(words + ["--", sys.executable] + program + asked.args)


def report() -> int:
    return _start(sys.argv[1:])

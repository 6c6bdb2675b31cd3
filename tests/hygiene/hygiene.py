#!/usr/bin/env python3
"""hygiene.py memcheck|poisoned BUILD DIRTY [--every-case|PROGRAM...]

Runs every program that the tests build, or those named, with the arguments that the suite gives it:

memcheck  Each once under valgrind: an access outside what was allocated, or a decision that depends on
          memory that nobody wrote, fails.
poisoned  Each in unusual surroundings: stacks and the heap hold a pattern (dirty.c and GLIBC_TUNABLES), the
          environment is large, and the user, umask, locale, time zone and number of
          CPUs are not those of other tests. What the suite asserts must hold.

Which programs there are and which test runs which is asked of meson. Of a bats file only as many cases are
run as it takes to see each of its programs, all of them with --every-case. A program that no test ran fails,
unless LEFT_OUT names it. Prints TAP, with a line for each program."""
import concurrent.futures
import json
import os
import pathlib
import queue
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
LIMIT_S = 900  # for one test
NOBODY = 65534

# Programs that are not run at all.
LEFT_OUT = {
    "bench_stack": "a benchmark",
    "bench_stack_instructions": "a benchmark",
    "cycles": "stops threads of another process for its test",
    "events": "its test counts its instructions",
    "families_shared": "needs a GPU",
    "families_static": "needs a GPU",
    "holders_fake_debug": "looks like a CPython that cannot be read",
    "holders_fake_python": "looks like a CPython that cannot be read",
    "idle": "a benchmark",
    "kill_anywhere_program": "its test steps through it by ptrace",
    "load": "a benchmark",
    "pausing": "its test stops it, which would be valgrind",
    "states": "its test stops it, which would be valgrind",
    "static": "a preload does not reach it, and its test would look into valgrind",
    "threads": "a benchmark",
    "waits": "its test stops it, which would be valgrind",
    "words": "reads another process's memory for its test",
}

# Cases of tests that have a table of hundreds: one for each program.
OF_ITS_TABLE = {
    "verdicts": ["list-return", "kind-managed", "per-thread", "plug-in-reloaded", "cpp-vector-of-main", "fixed-set",
                 "oom-weights", "store-tiny-blocks", "cpp-closures", "beside-streams"],
}

# Programs that the build runs, not a test: their arguments.
BY_THE_BUILD = {
    "seed": ["$FOLDER/seed.gmt"],
}

# Programs whose tests compare runs, which differ under memcheck (its own frames and handlers are in the stacks); their errors
# count, their end does not.
OTHERWISE_UNDER_MEMCHECK = {"families_sim13", "families_sim_static", "unwinder_shapes"}

# Programs that are not run under memcheck.
NOT_UNDER_MEMCHECK = {
    "clock_follows_system": "times the processor",
    "ends_at_once": "its threads spin until others are done",
    "guest_handlers": "valgrind cannot deliver a signal to a stack that is to grow",
    "hosts": "thousands of threads, timers and tracers",
    "growth_study": "judges thousands of traces by what test_growth_cases runs",
    "holders_native": "its test looks into the process, which is valgrind's",
    "size_is_bounded": "compares resident sizes, which are valgrind's",
    "stack_hostile": "reads words of the stack whatever they hold",
    "test_stack_other_stacks": "reads words of other stacks whatever they hold",
}


class Program:
    def __init__(self, target):
        self.path = target["filename"][0]
        self.name = os.path.basename(self.path)
        self.id = target["id"]
        flags = [flag for source in target["target_sources"] for flag in source.get("parameters", [])]
        self.sanitized = any(flag.startswith("-fsanitize=") for flag in flags)

    def reason_to_leave_out(self, way):
        if self.sanitized:
            return "has a sanitizer of its own"
        return LEFT_OUT.get(self.name) or way == "memcheck" and NOT_UNDER_MEMCHECK.get(self.name)


class Test:
    """A test of the suite, or some of a bats file's cases, and the programs that it is run for."""

    def __init__(self, test, build):
        self.name, self.build = test["name"], build
        self.environment, self.depends, self.folder = test["env"], test["depends"], test["workdir"] or build
        self.command = [os.path.join(build, word) if os.path.exists(os.path.join(build, word)) else word
                        for word in test["cmd"]]
        bats = [word for word in self.command if word.endswith(".bats")]
        self.all_cases = bats_cases(pathlib.Path(bats[0]).read_text()) if bats else {}
        self.cases, self.programs, self.case_of = [], [], {}

    def takes_apart(self, program):
        return any(re.search(rf"\b(cp|strip|objcopy)\b.*/{re.escape(program.name)}\b", body)
                   for body in self.all_cases.values())

    def is_for_anyone(self):
        """Whether another user may run it: not by a Python in somebody's home."""
        return all(not word.startswith("/") or not os.path.exists(word) or anyone_may_enter(os.path.dirname(word))
                   for word in map(system_python, self.command))

    def cases_of(self, program, sign):
        """The cases that name it after the sign; a copy of the program is not the program."""
        name = sign + re.escape(program.name) + r"\b"
        return [case for case, body in self.all_cases.items()
                if re.search(name, body) and not re.search(rf"\b(cp|strip|objcopy)\b.*{name}", body)]

    def runs(self, program, sign):
        named = (program.path in self.environment.values() or self.name in OF_ITS_TABLE or
                 program.name in map(os.path.basename, self.command))
        return program.id in self.depends and (named or bool(self.cases_of(program, sign)))

    def add(self, program, sign):
        self.programs.append(program)
        cases = self.cases_of(program, sign) or list(self.all_cases)
        if cases and not set(cases) & set(self.cases):
            self.cases.append(cases[0])
        self.case_of[program] = next((case for case in cases if case in self.cases), "")

    def arguments(self):
        if self.name in OF_ITS_TABLE:
            return [*self.command[:self.command.index(self.build) + 1], *OF_ITS_TABLE[self.name]]
        if not self.cases:
            return self.command
        names = "|".join(re.sub(r"([][(){}.*+?^$|\\])", r"\\\1", case) for case in self.cases)
        return [*self.command, "--filter", f"^({names})$"]


def run_by_the_build(program, build):
    """A test of the program alone, with its arguments of BY_THE_BUILD."""
    return Test({"name": program.name, "cmd": [program.path, *BY_THE_BUILD[program.name]], "env": {},
                 "depends": [program.id], "workdir": None}, build)


def bats_cases(text):
    """The body of each case, with those of the file's functions that it calls."""
    functions = dict(re.findall(r"^(\w+)\(\) \{\n(.*?)^\}", text, re.M | re.S))
    cases = {}
    for name, body in re.findall(r'^@test "((?:[^"\\]|\\.)*)" \{(.*?)^(?=@test|\w+\(\) \{|\Z)', text, re.M | re.S):
        for _ in range(3):
            body += "".join(code for function, code in functions.items()
                            if re.search(rf"\b{function}\b", body) and code not in body)
        cases[name.replace('\\"', '"')] = body
    return cases


def plan(tests, programs):
    """As few tests as it takes to run every program, found by its path or else by its name."""
    chosen, left = [], list(programs)
    if "--every-case" in sys.argv:
        for test in tests:
            test.programs = [program for program in programs if test.runs(program, "/")]
            test.case_of = dict.fromkeys(test.programs, "")
        return [test for test in tests if test.programs], []
    for sign in "/", r"\b":
        for program in list(left):
            able = [test for test in tests if test.runs(program, sign)]
            test = next((test for test in able if test in chosen), able[0] if able else None)
            if test:
                left.remove(program)
                test.add(program, sign)
                if test not in chosen:
                    chosen.append(test)
    return chosen, left


OTHERS = {"node_modules", "debian11"}  # folders of packages and of another system, made by other tests


class Surroundings:
    """A copy of the build folder in which each of the tests' programs is a script that notes that it ran."""

    def __init__(self, way, build, dirty, programs):
        self.way, self.dirty, self.build = way, dirty, build
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="hygiene-"))
        self.notes = self.root / "notes"
        self.notes.mkdir()
        for folder in "src", "tools":
            (self.root / folder).symlink_to(os.path.join(build, folder))
        self.copy(pathlib.Path(build, "tests"), self.root / "tests", {program.path: program for program in programs})
        self.user = []
        if way == "poisoned" and os.geteuid() == 0:
            self.user = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--inh-caps=-all"]
            for path in [self.root, *self.root.rglob("*")]:
                os.chown(path, NOBODY, NOBODY, follow_symlinks=False)

    def copy(self, origin, copied, programs):
        copied.mkdir()
        for entry in os.scandir(origin):
            if not os.path.exists(entry.path):  # a link of another system's files
                continue
            if entry.path in programs:
                self.write_script(copied / entry.name, programs[entry.path])
            elif not entry.is_dir(follow_symlinks=False) and entry.stat().st_mode & 4:
                (copied / entry.name).symlink_to(entry.path)
            elif not entry.is_dir(follow_symlinks=False):
                shutil.copy(entry.path, copied / entry.name)
            elif not entry.name.endswith(".p") and entry.name not in OTHERS:
                self.copy(pathlib.Path(entry.path), copied / entry.name, programs)

    def write_script(self, path, program):
        note = self.notes / program.name
        if self.way == "memcheck":
            options = f"--log-file={note}/%p --num-callers=24 --suppressions={HERE}/memcheck.supp"
            text = (f"mkdir {note} 2> /dev/null &&\n"
                    f"TEST_UNDER_MEMCHECK=1 exec valgrind -q --fair-sched=yes {options} {program.path} \"$@\"\n"
                    f"exec {program.path} \"$@\"\n")
        else:
            text = (f"mkdir -p {note}\nLD_PRELOAD=${{LD_PRELOAD:+$LD_PRELOAD:}}{self.dirty} "
                    f"exec {program.path} \"$@\"\n")
        path.write_text("#!/bin/sh\n" + text)
        path.chmod(0o755)

    def moved(self, word):
        """A path in the build folder, to its place in the copy. Libraries stay: programs look at their paths."""
        word = word.replace("$FOLDER", str(self.root))
        if self.user:
            word = system_python(word)
        if word == self.build:
            return str(self.root)
        if not word.startswith(f"{self.build}/tests/") or word == f"{self.build}/tests/sim":
            return word
        return str(self.root) + word[len(self.build):]

    def environment(self, test):
        environment = dict(os.environ, XDG_CACHE_HOME=str(self.root / "cache"))
        environment |= {key: self.moved(value) for key, value in test.environment.items()}
        if self.way == "poisoned":
            environment |= {
                "GLIBC_TUNABLES": "glibc.malloc.perturb=165", "MALLOC_PERTURB_": "165", "PAD": "x" * 12345,
                "LC_ALL": "C", "LANG": "C", "TZ": "Pacific/Chatham", "HOME": "/nonexistent",
                "PATH": ":".join(filter(anyone_may_enter, os.environ["PATH"].split(":"))),
            }
        return environment

    def run(self, test, cpus):
        """The test's output, and what was wrong with it."""
        cpu = cpus.get()

        def prepare():
            if self.way == "poisoned":
                os.umask(0o077)
                os.sched_setaffinity(0, {cpu})

        process = subprocess.Popen(
            [*self.user, *map(self.moved, test.arguments())], env=self.environment(test), cwd=test.folder,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            errors="replace", start_new_session=True, preexec_fn=prepare)
        try:
            output, _ = process.communicate(timeout=LIMIT_S)
            wrong = "" if process.returncode in (0, 77) else f"{test.name} ended with status {process.returncode}\n"
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            output, _ = process.communicate()
            wrong = f"{test.name} was not done after {LIMIT_S} s\n"
        cpus.put(cpu)
        return output, wrong

    def verdict(self, program, test, output, wrong):
        """What is wrong with a program after its test."""
        note, case = self.notes / program.name, test.case_of[program]
        skipped = re.search(rf"^ok \d+ {re.escape(case)}(.*# skip.*)$", output, re.M) if case else None
        if skipped:
            return skipped[1]
        if not note.exists():
            return f"{test.name} {case} did not run it\n{output}"
        if self.way == "memcheck":
            errors = "".join(log.read_text(errors="replace") for log in sorted(note.iterdir()))
            if errors or program.name in OTHERWISE_UNDER_MEMCHECK:
                return errors
        if case and re.search(rf"^ok \d+ {re.escape(case)}$", output, re.M):
            return ""
        return wrong and wrong + output


def anyone_may_enter(folder):
    path = pathlib.Path(folder).absolute()
    return all(part.exists() and part.stat().st_mode & 1 for part in (path, *path.parents))


def system_python(word):
    usable = os.path.basename(word) != "python3" or not os.path.isabs(word) or anyone_may_enter(os.path.dirname(word))
    return word if usable else "/usr/bin/python3"


def introspect(what, build):
    return json.loads(subprocess.check_output(["meson", "introspect", what, build]))


def main():
    way, build, dirty, wanted = sys.argv[1], os.path.realpath(sys.argv[2]), os.path.realpath(sys.argv[3]), sys.argv[4:]
    if way == "memcheck" and not shutil.which("valgrind"):
        print("1..0 # SKIP valgrind is not installed")
        return 0
    if way == "poisoned" and os.geteuid() == 0 and not anyone_may_enter(build):
        print(f"1..0 # SKIP no other user may enter {build}")
        return 0
    programs = [Program(target) for target in introspect("--targets", build)
                if target["type"] == "executable" and target["filename"][0].startswith(f"{build}/tests/")]
    if wanted not in ([], ["--every-case"]):
        programs = [program for program in programs if program.name in wanted]
    tests = [Test(test, build) for test in introspect("--tests", build) if "gpumemtrace:hygiene" not in test["suite"]]
    left_out = {program: program.reason_to_leave_out(way) for program in programs}
    if "--every-case" in wanted:
        left_out |= {program: "is taken apart, which a script cannot be" for program in programs
                     if any(test.takes_apart(program) for test in tests)}
    programs = [program for program in programs if not left_out[program]]
    tests += [run_by_the_build(program, build) for program in programs if program.name in BY_THE_BUILD]
    if way == "poisoned" and os.geteuid() == 0:
        tests = [test for test in tests if test.is_for_anyone()]
    chosen, left = plan(tests, programs)
    surroundings = Surroundings(way, build, dirty, programs)
    cpus = queue.SimpleQueue()
    for cpu in sorted(os.sched_getaffinity(0)):
        cpus.put(cpu)
    print(f"1..{len(left_out)}", flush=True)
    if way == "poisoned" and not surroundings.user:
        print("# as the same user: only root may become another")
    number = failed = 0
    try:
        for program, reason in left_out.items():
            if reason:
                number += 1
                print(f"ok {number} - {program.name} # skip {reason}", flush=True)
        for program in left:
            number, failed = number + 1, failed + 1
            print(f"not ok {number} - {program.name}: no test runs it", flush=True)
        with concurrent.futures.ThreadPoolExecutor(cpus.qsize()) as pool:
            running = {pool.submit(surroundings.run, test, cpus): test for test in chosen}
            for done in concurrent.futures.as_completed(running):
                test = running[done]
                for program in test.programs:
                    number += 1
                    wrong = surroundings.verdict(program, test, *done.result())
                    if wrong.startswith(" # skip"):
                        print(f"ok {number} - {program.name}: {test.name}{wrong}", flush=True)
                        continue
                    failed += bool(wrong)
                    print(f"{'not ' if wrong else ''}ok {number} - {program.name}: {test.name}", flush=True)
                    print("".join(f"# {line}\n" for line in wrong.splitlines()[:100]), end="", flush=True)
    finally:
        shutil.rmtree(surroundings.root, ignore_errors=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

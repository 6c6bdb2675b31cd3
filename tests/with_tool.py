#!/usr/bin/env python3
"""with_tool.py BUILD TOOL [TEST...]: the tests of a build folder that run gpumem-report, all or those
named, with another build of it, or a script that runs it under a checker. Prints what failed; the exit
status is 1 if anything did. Programs under the shim stay those of BUILD: a sanitizer cannot be preloaded."""
import json
import os
import shutil
import subprocess
import sys
import tempfile

build, tool, wanted = os.path.realpath(sys.argv[1]), os.path.realpath(sys.argv[2]), sys.argv[3:]
checked = os.path.join(build, "tests", "invariants", "gpumem-report")  # runs the tool, and takes another one

# `run` takes the shim beside the tool before any other: the plain one
folder = tempfile.TemporaryDirectory()
os.chmod(folder.name, 0o755)  # tests run the tool as another user, too
if open(tool, "rb").read(4) == b"\x7fELF":
    tool = shutil.copy(tool, folder.name)
    os.symlink(os.path.join(build, "src", "interpose", "libgpumemtrace.so"),
               os.path.join(folder.name, "libgpumemtrace.so"))

tests = json.loads(subprocess.check_output(["meson", "introspect", "--tests", build]))
failed = ran = skipped = 0
for test in tests:
    words = [os.path.join(build, word) for word in test["cmd"] + list(test["env"].values())]
    if checked not in words or wanted and test["name"] not in wanted:
        continue
    ran += 1
    done = subprocess.run(test["cmd"], env=os.environ | test["env"] | {"TESTED_REPORT": tool},
                          cwd=test["workdir"] or build,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    # bats and TAP programs say "not ok"; status 77 is a test that cannot run here
    lines = done.stdout.splitlines()
    bad = any(line.startswith("not ok") for line in lines)
    skipped += done.returncode == 77
    if bad or done.returncode not in (0, 77):
        failed += 1
        print(f"--- {test['name']}: failed, status {done.returncode}")
        print("\n".join(line for line in lines if not line.startswith("ok "))[-4000:])
    else:
        print(f"{test['name']}: ok", flush=True)
print(f"{ran - failed - skipped} passed, {failed} failed, {skipped} skipped with {tool}")
sys.exit(1 if failed or not ran else 0)

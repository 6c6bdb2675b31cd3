"""Where the tracer and the report tool of this package are, and how they are started."""
import glob
import os
from typing import List

BUNDLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bundle")
SHIM = os.path.join(BUNDLE, "lib", "libgpumemtrace.so")


def _installed() -> List[str]:
    """The gpumem-report in PATH that is a program: the package's own command of that name is a script."""
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        path = os.path.join(folder, "gpumem-report")
        if os.access(path, os.X_OK) and os.path.isfile(path):
            with open(path, "rb") as file:
                if file.read(4) == b"\x7fELF":
                    return [path]
    return []


def report_command() -> List[str]:
    """The words that start gpumem-report: of the wheel its own loader, its libraries, the tool; else the installed one."""
    folder = os.path.join(BUNDLE, "lib", "gpumemtrace")
    loaders = glob.glob(os.path.join(glob.escape(folder), "ld-linux*.so.*"))
    if loaders:
        return [loaders[0], "--library-path", folder, os.path.join(folder, "gpumem-report")]
    installed = _installed()
    if not installed:
        raise FileNotFoundError("gpumem-report is neither in PATH nor in " + folder + ", where the wheel has it")
    return installed


def preload(environment: dict) -> None:
    """Puts the tracer behind what the environment preloads already. ValueError if it cannot be.

    As gpumem-report run does: a sanitizer has to be the first, and of a preload that turns cudaMalloc into other
    calls, those are seen and nothing twice.
    """
    if any(sign in SHIM for sign in " :"):
        raise ValueError(f"{SHIM} cannot be preloaded: the loader takes spaces and colons for the end of a "
                         "name; install gpumemtrace into a folder without them")
    if not os.path.exists(SHIM):
        raise ValueError(f"gpumemtrace was not installed from its wheel: {SHIM} is missing")
    before = environment.get("LD_PRELOAD")
    environment["LD_PRELOAD"] = (before + ":" if before else "") + SHIM

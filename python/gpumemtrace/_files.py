"""Where the tracer and the report tool of this package are, and how they are started."""
import glob
import os
from typing import List

BUNDLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bundle")
SHIM = os.path.join(BUNDLE, "lib", "libgpumemtrace.so")


def report_command() -> List[str]:
    """The words that start gpumem-report: its own loader, its libraries, the tool."""
    folder = os.path.join(BUNDLE, "lib", "gpumemtrace")
    loaders = glob.glob(os.path.join(glob.escape(folder), "ld-linux*.so.*"))
    if not loaders:
        raise FileNotFoundError(
            "gpumemtrace was not installed from its wheel: there is no report tool in " + folder)
    return [loaders[0], "--library-path", folder, os.path.join(folder, "gpumem-report")]


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

#!/usr/bin/env python3
"""The package's parser of sizes and the tool's options against sizes.tsv: test_sizes.py TABLE PACKAGE TOOL"""
import importlib.util
import subprocess
import sys

USAGE, NO_INPUT = 2, 3  # the tool's exit statuses


def rows(path):
    with open(path, encoding="utf-8") as table:
        for line in table:
            if not line.startswith("#"):
                text, value = line.rstrip("\n").rsplit("\t", 1)
                text = text[1:-1].replace("\\t", "\t").replace("\\n", "\n")
                yield text, None if value == "-" else int(value)


def load(package):
    """The module alone: the package's own start looks for the shim."""
    spec = importlib.util.spec_from_file_location("size", f"{package}/_size.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def parsed(parse_size, text):
    try:
        return parse_size(text)
    except ValueError as error:
        assert str(error).startswith(f'"{text}" is no size'), error
        return None


def main():
    table, package, tool = sys.argv[1:]
    parse_size, bad = load(package).parse_size, []
    cases = list(rows(table))
    for text, expected in cases:
        if parsed(parse_size, text) != expected:
            bad.append(f"the package: {text!r} is {parsed(parse_size, text)}, not {expected}")
        status = subprocess.run([tool, "check", f"--max-peak={text}", "/nonexistent"], stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL, check=False).returncode
        if status != (USAGE if expected is None else NO_INPUT):
            bad.append(f"the tool: status {status} for {text!r}")
    for number in (0, 1 << 20, 1.5, 1e8):  # a marker may have a number instead of a text
        if parse_size(number) != int(number):
            bad.append(f"the package: {number!r}")
    print("\n".join(bad) or f"{len(cases)} sizes")
    return bool(bad) or len(cases) < 100


sys.exit(main())

#!/usr/bin/env python3
"""What the table of CUDA functions covers.

coverage.py document TABLE NOT_ROWS        prints docs/api-coverage.md
coverage.py current TABLE NOT_ROWS FILE    status 1 if FILE is not that
coverage.py complete TABLE NOT_ROWS CUDA   every function of the toolkit in CUDA, of its libraries and its
                                      headers, that could be about memory or is a row under another suffix
                                      is a row or listed in NOT_ROWS with a reason; 77 without a toolkit

TABLE is the program table.c.
"""
import collections
import fnmatch
import os
import re
import subprocess
import sys

MEMORY = re.compile(r"Malloc|Alloc|Free|Mem(Create|Map|Unmap|Release|Pool\w*)|Register|Ipc|Array|"
                    r"Mipmapped|Graph\w*Mem|cuStream(Begin|End)\w*apture|Ctx(Create|Destroy)|PrimaryCtx|Import")

# What a function's variants are told apart by: cuMemAllocAsync_v2_ptsz.
SUFFIXES = re.compile(r"(_v\d+)?(_ptsz|_ptds)?$")

# What becomes of a function's calls: the classes of src/api/roles.def, and of not-rows.txt.
CLASSES = {
    "RECORDED": "what its calls make, change or end is recorded",
    "MEASURED": "its calls take memory without saying so: what they cost is measured",
    "NOTED": "its calls move no memory, but decide how other calls are recorded",
    "ROUTED": "it gives out functions: the wrappers take their place",
    "FORWARDED": "its calls are passed on, and nothing is kept of them",
}
OTHER_CLASSES = {
    "NEUTRAL": "it looks like memory and moves none: it is not intercepted",
    "UNSUPPORTED": "it moves memory that is not followed",
    "INVALID": "no program can call it",
}

HEAD = """# Which CUDA functions are seen

Made from `src/api/cuda_api.def`, `src/api/roles.def` and `tests/api/not-rows.txt` by
`tests/api/coverage.py document`; a test fails when it is stale. Every function of a role below is
intercepted in its layer, the runtime's for libcudart 11, 12 and 13 unless a column says otherwise. Names
ending in `_ptsz` are the per-thread-stream variants, `_v2` and so on the driver's versions. A second test
holds the tables against the libraries and headers of a CUDA toolkit: each of their functions that looks
like memory is here.
"""


def tables(table):
    """The rows of cuda_api.def and those of roles.def."""
    text = subprocess.run([table], capture_output=True, text=True, check=True).stdout
    lines = [line.split("\t") for line in text.splitlines()]
    return [line[1:] for line in lines if line[0] == "row"], [line[1:] for line in lines if line[0] == "role"]


def sentence(text):
    return f"{text[0].upper()}{text[1:]}."


def class_table(counts):
    lines = ["| class | functions | meaning |", "|---|---|---|"]
    for name, meaning in {**CLASSES, **OTHER_CLASSES}.items():
        lines.append(f"| {name.lower()} | {counts.pop(name, 0)} | {meaning} |")
    if counts:
        sys.exit(f"coverage.py: unknown classes: {', '.join(sorted(counts))}")
    return "\n".join(lines)


def role_section(role, kind_of_class, meaning, chosen):
    parts = [f"\n## {role.lower().replace('_', ' ')}\n\n{sentence(meaning)} Class: {kind_of_class.lower()}.\n",
             "| function | layer | kind | libcudart |\n|---|---|---|---|"]
    for name, layer, _, kind, majors in chosen:
        present = [m for bit, m in ((1, "11"), (2, "12"), (4, "13")) if int(majors) & bit]
        some = " ".join(present) if layer == "runtime" and len(present) < 3 else ""
        parts.append(f"| `{name}` | {layer} | {kind} | {some} |")
    return parts


def other_section(others):
    parts = ["\n## no rows\n\nFunctions that look like memory and have no row of the table. A `*` stands for any text.\n",
             "| function | class | reason |\n|---|---|---|"]
    ordered = sorted(others.items(), key=lambda item: list(OTHER_CLASSES).index(item[1][0]), reverse=True)
    return parts + [f"| `{pattern}` | {name.lower()} | {reason} |" for pattern, (name, reason) in ordered]


def document(table, not_rows):
    (rows, roles), others = tables(table), reasons(not_rows)
    class_of = {name: kind_of_class for name, kind_of_class, _ in roles}
    counts = collections.Counter([class_of[r[2]] for r in rows] + [name for name, _ in others.values()])
    parts = [HEAD, class_table(counts)]
    for role, kind_of_class, meaning in sorted(roles, key=lambda role: list(CLASSES).index(role[1])):
        chosen = [r for r in rows if r[2] == role]
        if chosen:
            parts += role_section(role, kind_of_class, meaning, chosen)
    runtime = sum(1 for r in rows if r[1] == "runtime")
    parts += other_section(others)
    parts.append(f"\n{runtime} rows of the runtime, {len(rows) - runtime} of the driver.\n")
    return "\n".join(parts)


def exported(library):
    text = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True,
                          check=True).stdout
    names = {line.split()[-1].split("@")[0] for line in text.splitlines()}
    return {n for n in names if re.match(r"cu[A-Z]|cuda[A-Z]", n)}


def declared(header):
    """The functions of a header, and the names that its macros give them."""
    names, text = set(), open(header).read()
    names.update(re.findall(r"\bCUDA(?:RT)?API\s+(cu\w+)\s*\(", text))
    for per_thread, name in re.findall(
            r"^\s*#\s*define\s+cu\w+\s+(?:__CUDA(?:RT)?_API_(PTDS|PTSZ)\()?(cu\w+)", text, re.M):
        names.update([name, f"{name}_{per_thread.lower()}"] if per_thread else [name])
    return names


def variants_of(rows_names):
    """Whether a function is one of these but for a suffix."""
    bases = {SUFFIXES.sub("", name) for name in rows_names}
    return lambda name: SUFFIXES.sub("", name) in bases


def reasons(path):
    """Class and reason by pattern."""
    found = {}
    for line in open(path):
        if line.strip() and not line.startswith("#"):
            pattern, name, reason = line.split(None, 2)
            found[pattern] = name, reason.strip()
    return found


def complete(table, not_rows, cuda):
    libraries = {"runtime": f"{cuda}/lib64/libcudart.so.13", "driver": f"{cuda}/lib64/stubs/libcuda.so"}
    headers = {"runtime": f"{cuda}/include/cuda_runtime_api.h", "driver": f"{cuda}/include/cuda.h"}
    if not all(map(os.path.exists, [*libraries.values(), *headers.values()])):
        print(f"skipped: no toolkit of CUDA 13 in {cuda}")
        return 77
    all_rows, listed, used, bad = tables(table)[0], reasons(not_rows), set(), 0
    for layer, library in libraries.items():
        names = exported(library)
        ours = {r[0] for r in all_rows if r[1] == layer}
        is_variant = variants_of(ours)
        missing = (names | declared(headers[layer])) - ours
        for name in sorted(n for n in missing if MEMORY.search(n) or is_variant(n)):
            pattern = next((p for p in listed if fnmatch.fnmatchcase(name, p)), None)
            used.add(pattern)
            if not pattern:
                print(f"{name} of the {layer} is neither a row of cuda_api.def nor in not-rows.txt")
                bad = 1
        for name, _, _, _, majors in (r for r in all_rows if r[1] == layer):
            if name not in names and (layer == "driver" or int(majors) & 4):
                print(f"{name} is a row, but {library} does not have it")
                bad = 1
    for pattern in set(listed) - used:
        print(f"{pattern} in not-rows.txt matches nothing that is missing")
        bad = 1
    return bad


def main():
    command, *arguments = sys.argv[1:]
    if command == "document":
        print(document(*arguments), end="")
        return 0
    if command == "current":
        *of_tables, path = arguments
        if open(path).read() == document(*of_tables):
            return 0
        print(f"{path} is stale: coverage.py document {' '.join(of_tables)} > {path}")
        return 1
    return complete(*arguments)


sys.exit(main())

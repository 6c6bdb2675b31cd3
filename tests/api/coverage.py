#!/usr/bin/env python3
"""What the table of CUDA functions covers.

coverage.py document TABLE            prints docs/api-coverage.md
coverage.py current TABLE FILE        status 1 if FILE is not that
coverage.py complete TABLE NOT_ROWS CUDA   every function of the toolkit in CUDA, of its libraries and its
                                      headers, that could be about memory or is a row under another suffix
                                      is a row or listed in NOT_ROWS with a reason; 77 without a toolkit

TABLE is the program table.c.
"""
import fnmatch
import os
import re
import subprocess
import sys

MEMORY = re.compile(r"Malloc|Alloc|Free|Mem(Create|Map|Unmap|Release|Pool\w*)|Register|Ipc|Array|"
                    r"Mipmapped|Graph\w*Mem|cuStream(Begin|End)\w*apture|Ctx(Create|Destroy)|PrimaryCtx|Import")

# What a function's variants are told apart by: cuMemAllocAsync_v2_ptsz.
SUFFIXES = re.compile(r"(_v\d+)?(_ptsz|_ptds)?$")

ROLES = {
    "ALLOC": "allocates: the pointer, array or handle it hands out is followed to its free",
    "REGISTER": "makes host memory known to CUDA: a figure of its own, never owned bytes",
    "FREE": "frees, whatever family the memory is of; a call that CUDA refuses is an error with its stack",
    "EXPORT": "hands memory to other processes: freeing it afterwards is noted",
    "POOL_CREATE": "makes a pool: what it holds and what is used of it are asked of the pool",
    "POOL_IMPORT": "another process's pool: its memory is not ours",
    "POOL_DESTROY": "a pool goes when the last allocation from it is freed",
    "POOL_TRIM": "the pool's figures are asked again",
    "POOL_SET": "the device's current pool changes",
    "VMM_RESERVE": "address space, no memory",
    "VMM_ADDRESS_FREE": "address space given back; refused while something is mapped there",
    "VMM_MAP": "a mapping: holds its handle's memory, and tells the size of an imported one",
    "VMM_UNMAP": "ends the mappings of a range",
    "VMM_MAP_ARRAY": "tiles of sparse arrays: hold their handles' memory as mappings do",
    "VMM_RETAIN": "one more reference to a handle",
    "VMM_RELEASE": "one reference less; the memory ends when references and mappings are gone",
    "MULTICAST_BIND": "a binding holds the memory it binds",
    "MULTICAST_UNBIND": "ends bindings",
    "CAPTURE_BEGIN": "while a capture is under way, streams are asked whether an allocation is a graph's node",
    "CAPTURE_END": "as its beginning",
    "GRAPH_NODE": "a node that allocates: an address now, memory from the first launch",
    "GRAPH_FREE_NODE": "a node that frees, at launches (found by asking the graph when it is instantiated)",
    "GRAPH_INSTANTIATE": "the graph is asked for its memory nodes",
    "GRAPH_LAUNCH": "allocates and frees what the graph's nodes say; failures are counted",
    "GRAPH_DESTROY": "frees no memory that is allocated",
    "GRAPH_EXEC_DESTROY": "frees no memory that is allocated",
    "GRAPH_TRIM": "the device's graph reserve is asked again",
    "CTX_CREATE": "a context: its cost by NVML and its stack",
    "CTX_RETAIN": "the primary context: made by the first call, its cost and stack are that call's",
    "CTX_RELEASE": "the last one frees what was allocated in the primary context",
    "CTX_DESTROY": "frees what was allocated in the context",
    "GREEN_CREATE": "a green context; what is allocated in it belongs to the primary context",
    "GREEN_DESTROY": "a green context goes, memory stays",
    "DEVICE_RESET": "frees what was allocated in the device's primary context; pools stay",
    "MODULE_LOAD": "code: its cost by the driver's free bytes",
    "MODULE_UNLOAD": "code given back",
    "MODULE_USE": "code that is loaded lazily is loaded here",
    "LIMIT": "stack and heap limits: their cost by the driver's free bytes",
    "MEM_INFO": "passes; under GPUMEMTRACE_CAPACITY it tells of the pretended device",
    "SYNC": "pools give memory back after it: their figures are asked again if anything was pending",
    "STREAM_CREATE": "the queues behind streams take memory: their cost by the driver's free bytes",
    "LAUNCH": "a kernel: the first launch of each may load its code and grow the stacks' memory",
    "ROUTE": "hands out function pointers: ours take their place",
    "NOTHING": "passes through; moves no memory",
}

HEAD = """# Which CUDA functions are seen

Made from `src/api/cuda_api.def` by `tests/api/coverage.py document`; a test fails when it is stale.
Every function here is intercepted in its layer, the runtime's for libcudart 11, 12 and 13 unless a
column says otherwise. Names ending in `_ptsz` are the per-thread-stream variants, `_v2` and so on the
driver's versions. What is exported by CUDA, looks like memory and is not here is listed with the reason
in `tests/api/not-rows.txt`.
"""


def rows(table):
    text = subprocess.run([table], capture_output=True, text=True, check=True).stdout
    return [line.split("\t") for line in text.splitlines()]


def document(table):
    parts, all_rows = [HEAD], rows(table)
    for role, meaning in ROLES.items():
        chosen = [r for r in all_rows if r[2] == role]
        if not chosen:
            continue
        parts.append(f"\n## {role.lower().replace('_', ' ')}\n\n{meaning[0].upper()}{meaning[1:]}.\n")
        parts.append("| function | layer | kind | libcudart |\n|---|---|---|---|")
        for name, layer, _, kind, majors in chosen:
            present = [m for bit, m in ((1, "11"), (2, "12"), (4, "13")) if int(majors) & bit]
            some = " ".join(present) if layer == "runtime" and len(present) < 3 else ""
            parts.append(f"| `{name}` | {layer} | {kind} | {some} |")
    unknown = {r[2] for r in all_rows} - set(ROLES)
    if unknown:
        sys.exit(f"coverage.py: say in ROLES what {', '.join(sorted(unknown))} means")
    runtime = sum(1 for r in all_rows if r[1] == "runtime")
    parts.append(f"\n{runtime} rows of the runtime, {len(all_rows) - runtime} of the driver.\n")
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
    found = {}
    for line in open(path):
        pattern, _, reason = line.strip().partition(" ")
        if pattern and not pattern.startswith("#"):
            found[pattern] = reason.strip()
    return found


def complete(table, not_rows, cuda):
    libraries = {"runtime": f"{cuda}/lib64/libcudart.so.13", "driver": f"{cuda}/lib64/stubs/libcuda.so"}
    headers = {"runtime": f"{cuda}/include/cuda_runtime_api.h", "driver": f"{cuda}/include/cuda.h"}
    if not all(map(os.path.exists, [*libraries.values(), *headers.values()])):
        print(f"skipped: no toolkit of CUDA 13 in {cuda}")
        return 77
    all_rows, listed, used, bad = rows(table), reasons(not_rows), set(), 0
    for layer, library in libraries.items():
        names = exported(library)
        ours = {r[0] for r in all_rows if r[1] == layer}
        is_variant = variants_of(ours)
        missing = (names | declared(headers[layer])) - ours
        for name in sorted(n for n in missing if MEMORY.search(n) or is_variant(n)):
            pattern = next((p for p in listed if fnmatch.fnmatchcase(name, p)), None)
            used.add(pattern)
            if not pattern or not listed[pattern]:
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
    command, table = sys.argv[1:3]
    if command == "document":
        print(document(table), end="")
        return 0
    if command == "current":
        if open(sys.argv[3]).read() == document(table):
            return 0
        print(f"{sys.argv[3]} is stale: coverage.py document {table} > {sys.argv[3]}")
        return 1
    return complete(table, *sys.argv[3:5])


sys.exit(main())

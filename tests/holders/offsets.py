"""Holds src/holders/python_offsets.c against the debug information of a CPython: offsets.py PYTHON TABLE; prints TAP.

Skipped where gdb, or debug information of that CPython, is missing. Every figure is gdb's, but for the sizes of
types that have no structure of their own, which the interpreter says itself.
"""

import json
import os
import re
import subprocess
import sys

python, table = sys.argv[1:3]
FACTS = """
import json, os, sys, sysconfig, types
def g(): yield
print(json.dumps([sys.version_info[1], os.path.join(sysconfig.get_config_var("LIBDIR") or "", sysconfig.get_config_var("INSTSONAME") or "-"),
    {"generator_bytes": type(g()).__basicsize__, "frame_bytes": types.FrameType.__basicsize__}]))
"""
minor, library, sizes = json.loads(subprocess.run([python, "-c", FACTS], capture_output=True, text=True, check=True).stdout)
old = minor <= 10
FRAME = "_frame" if old else "_PyInterpreterFrame"
# member of the table: structure and, in the order of versions, what the member was called
MEMBERS = {
    "main_thread": ("pyruntimestate", "main_thread"), "first_interpreter": ("pyruntimestate", "interpreters.head"),
    "next": ("_is", "next"), "threads": ("_is", "tstate_head", "threads.head"), "modules": ("_is", "modules", "imports.modules"),
    "sysdict": ("_is", "sysdict"), "builtins": ("_is", "builtins"), "dict": ("_is", "dict"),
    "generations": ("pyruntimestate" if minor == 8 else "_is", "gc.generations"), "forkers": ("_is", "before_forkers"),
    "atexit": ("_is", "atexit.callbacks"), "exception": ("_ts", "curexc_type", "current_exception"),
    "frame": ("_ts", "frame", "current_frame", "cframe"), "exc_info": ("_ts", "exc_info"), "thread_dict": ("_ts", "dict"),
    "async_exc": ("_ts", "async_exc"), "thread_context": ("_ts", "context"), "profile_object": ("_ts", "c_profileobj"),
    "frame_code": (FRAME, "f_code", "f_executable"), "frame_locals": (FRAME, "f_locals"),
    "frame_local_slots": (FRAME, "f_localsplus", "localsplus"), "frame_stack": (FRAME, "f_stacktop", "f_stackdepth", "stacktop", "stackpointer"),
    "frame_trace": ("_frame", "f_trace"), "frame_previous": (FRAME, "f_back", "previous"),
    "generator_frame": ("PyGenObject", "gi_frame", "gi_iframe"), "generator_code": ("PyGenObject", "gi_code"),
    "generator_exc": ("PyGenObject", "gi_exc_state"), "generator_name": ("PyGenObject", "gi_name"),
    "code_names": ("PyCodeObject", "co_varnames", "co_localsplusnames"), "code_stacksize": ("PyCodeObject", "co_stacksize"),
    "code_filename": ("PyCodeObject", "co_filename"), "code_name": ("PyCodeObject", "co_name"),
    "code_firstline": ("PyCodeObject", "co_firstlineno"), "code_argcount": ("PyCodeObject", "co_argcount"),
    "code_kwonlyargcount": ("PyCodeObject", "co_kwonlyargcount"), "type_keys": ("PyHeapTypeObject", "ht_cached_keys"),
    "tuple_items": ("PyTupleObject", "ob_item"), "type_module": ("PyHeapTypeObject", "ht_module"), "exc_notes": ("PyBaseExceptionObject", "notes"),
    "exc_traceback": ("PyBaseExceptionObject", "traceback"), "lru_bytes": ("lru_cache_object", ""),
    "deque_bytes": ("dequeobject", ""), "function_bytes": ("PyFunctionObject", ""),
    "exception_bytes": ("PyBaseExceptionObject", ""), "type_bytes": ("PyHeapTypeObject", ""),
    "code_locals": ("PyCodeObject", "co_nlocals" if old else "co_nlocalsplus"),
    **({"frame_run": (FRAME, "f_executing", "f_state"), "code_freevars": ("PyCodeObject", "co_freevars"),
        "code_cellvars": ("PyCodeObject", "co_cellvars")} if old else
       {"frame_function": (FRAME, "f_func", "f_funcobj"), "frame_object": (FRAME, "frame_obj"), "frame_owner": (FRAME, "owner"),
        "generator_state": ("PyGenObject", "gi_frame_state")}),
    **{"function_" + name: ("PyFunctionObject", "func_" + name) for name in (
        "code", "globals", "builtins", "defaults", "kwdefaults", "closure", "doc", "dict", "module", "annotations",
        "annotate", "qualname", "typeparams")},
}
if minor == 10:     # it has a cframe, which leads to no frame
    MEMBERS["frame"] = ("_ts", "frame")
GDB = """
import gdb, json
def find(structure, path):
    kind = None
    for name in (structure, "struct " + structure):
        try:
            kind = gdb.lookup_type(name).strip_typedefs()
            break
        except gdb.error:
            pass
    if kind is None or not kind.sizeof:
        return None
    offset = 0
    for part in path.split(".") if path else ():
        member = [m for m in kind.fields() if m.name == part]
        if not member:
            return None
        offset, kind = offset + member[0].bitpos // 8, member[0].type.strip_typedefs()
    return offset if path else kind.sizeof
print("FACTS" + json.dumps({name: [find(row[0], path) for path in row[1:]] for name, row in json.loads(WANTED).items()}))
"""

path = library if os.path.exists(library) else python
try:
    said = subprocess.run(["gdb", "-nx", "-batch", "-ex", "python WANTED = " + repr(json.dumps(MEMBERS)),
                           "-ex", "python exec(" + repr(GDB) + ")", path], capture_output=True, text=True, check=False).stdout
except FileNotFoundError:
    print("1..0 # SKIP gdb is not installed")
    sys.exit(0)
facts = json.loads(said[said.index("FACTS") + 5:].splitlines()[0]) if "FACTS" in said else {}
if not facts.get("next", [None])[0] and facts.get("next", [None])[0] != 0:
    print("1..0 # SKIP this CPython has no debug information")
    sys.exit(0)
with open(table, encoding="utf-8") as file:
    row = next(row for row in re.findall(r"\{(\.minor = .*?)\}", file.read(), re.S) if f".minor = {minor}," in row)
ours = {name: int(number) for name, number in re.findall(r"\.(\w+) = (\d+)", row)}
del ours["minor"]
print(f"1..{len(MEMBERS) + len(sizes) + 1}")
number = failures = 0


def compare(name, theirs):
    global number, failures
    number += 1
    good = ours.get(name, 0) == theirs
    failures += not good
    print("ok" if good else "not ok", number, f"- {name}: {ours.get(name, 0)} in the table, {theirs} in CPython 3.{minor}")


for name in MEMBERS:
    compare(name, next((offset for offset in facts[name] if offset is not None), 0))
for name, theirs in sizes.items():
    compare(name, theirs)
unknown = set(ours) - set(MEMBERS) - set(sizes)
number += 1
failures += bool(unknown)
print("not ok" if unknown else "ok", number, "- every member of the table is compared", *sorted(unknown))
sys.exit(failures > 0)

"""``%%gpumem`` measures a notebook's cell; ``%gpumem start`` and ``%gpumem stop`` wake the tracer and put it to sleep."""
from typing import Any, Optional

import gpumemtrace
from gpumemtrace import _shim
from gpumemtrace._size import format_size
from gpumemtrace._watch import ABSENT


def load(shell: Any) -> None:
    def label(file: str) -> Optional[str]:
        """The cell that a file's name stands for, by the table that IPython shows it from in tracebacks."""
        cell = getattr(shell.compile, "_filename_map", {}).get(file)
        return None if cell is None else f"In[{cell}]"

    def gpumem(line: str, cell: Optional[str] = None) -> None:
        """``%%gpumem [NAME]`` runs the cell and prints the GPU memory that it allocated, retained and peaked at, with
        the lines that did it. ``%gpumem start`` records from the next CUDA call on, where the tracer sleeps;
        ``%gpumem stop`` puts it to sleep; ``%gpumem`` says which it does and how much memory is in use.
        """
        if cell is None:
            print(_command(line.strip()))
            return
        with gpumemtrace.watch(line.strip() or f"cell {shell.execution_count}") as block:
            shell.run_cell(cell)
        block.file_label = label
        print(block)

    shell.register_magic_function(gpumem, "line_cell", "gpumem")


def _command(word: str) -> str:
    actions = {"start": (gpumemtrace.start, "recording begins with the next CUDA call"),
               "stop": (gpumemtrace.stop, "the tracer sleeps; its file keeps what was recorded")}
    if not _shim.present:
        return "gpumem: " + ABSENT
    if word in actions:
        act, done = actions[word]
        return "gpumem: " + (done if act() else "the tracer is switched off (GPUMEMTRACE_DISABLE)")
    if word:
        return f"gpumem: {word!r} is neither start nor stop; %%gpumem, with two signs, measures a cell"
    if not gpumemtrace.is_active():
        return "gpumem: the tracer sleeps or is switched off; %gpumem start wakes it"
    return f"gpumem: recording; {format_size(gpumemtrace.live_bytes())} in use"

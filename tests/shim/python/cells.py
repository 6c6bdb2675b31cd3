"""Runs cells in an IPython of its own and prints each with what it says: cells.py FILE, cells parted by lines of ---."""
import sys

from IPython.core.interactiveshell import InteractiveShell

shell = InteractiveShell.instance(colors="NoColor")
with open(sys.argv[1], encoding="utf-8") as file:
    for number, cell in enumerate(file.read().split("---\n"), 1):
        print(f"[{number}]", flush=True)
        shell.run_cell(cell, store_history=True)
        sys.stdout.flush()

#!/usr/bin/env python3
"""A man page of a command: make_page.py TOOL TEMPLATE > PAGE

What --help says (usage, options, formats, exit status) is put in place of @HEAD@, @OPTIONS@ and @EXIT@, so that it
is said once, in the tool's table; the template holds what --help has no room for. The command is the
template's name: gpumem-report-leaks.1.in; gpumem-report.1.in is the tool itself.
"""
import pathlib
import re
import subprocess
import sys

DATE = "November 28, 2026"
MACROS = {"Fl", "Ar", "Op", "Pa", "Nm", "Xr", "No", "Ns", "It", "Cm", "Ev"}
OPTION_COLUMN, TEXT_COLUMN = 2, 31


def escape(text):
    """Text of a line of its own: nothing in it is a macro or an escape."""
    text = text.replace("\\", "\\e").replace("--", "\\-\\-")
    return "\\&" + text if text.startswith((".", "'")) else text


def arguments(words):
    """`-o OUT FILE...` as arguments of a macro line."""
    out = []
    for word in words.split():
        dots = word.endswith("...")
        word = word.removesuffix("...")
        if word.startswith("-"):
            out.append("Fl " + (word[1:] or "-"))
        else:
            out.append("Ar " + " | ".join(word.split("|")) if "|" not in word else
                       "Ar " + " | Ar ".join(word.split("|")))
        if dots:
            out.append("Ar ...")
    return " ".join(out)


def synopsis(usage):
    lines = [".Nm"]
    for optional, plain in re.findall(r"\[([^]]*)\]|([^[]+)", usage):
        if optional:
            lines.append(".Op " + arguments(optional))
        elif plain.strip():
            lines.append("." + arguments(plain))
    return lines


def rows(lines):
    """Rows of a list of --help: (option or word, argument, text)."""
    for line in lines:
        name, text = line[OPTION_COLUMN:TEXT_COLUMN].strip(), line[TEXT_COLUMN:].strip()
        word, _, argument = name.partition(" ")
        yield word, argument, text


def option_list(lines):
    out = [".Bl -tag -width Ds"]
    for word, argument, text in rows(lines):
        tag = "Fl " + word[1:] if word.startswith("-") else "Cm " + word
        out += [f".It {tag}" + (f" Ar {argument}" if argument else ""), escape(text)]
    return out + [".El"]


def sections(help_text):
    """The blocks of --help by their first word; the first block is "usage"."""
    blocks = {}
    for block in help_text.strip().split("\n\n"):
        lines = block.splitlines()
        blocks[lines[0].split()[0].rstrip(":") if blocks else "usage"] = lines
    return blocks


def exit_status(lines):
    text = " ".join(lines).removeprefix("Exit status:").rstrip(".")
    out = [".Sh EXIT STATUS", ".Bl -tag -width Ds"]
    for status in re.split(r",\s*(?=\d)", text.strip()):
        number, meaning = status.split(" ", 1)
        out += [f".It {number}", escape(meaning)]
    return out + [".El"]


def page(tool, template):
    name = template.name.removesuffix(".1.in")
    command = name.removeprefix("gpumem-report").lstrip("-")
    said = subprocess.run([tool, *([command] if command else []), "--help"], check=True,
                          stdout=subprocess.PIPE, text=True).stdout
    help_of = sections(said)
    if command:
        purpose = help_of["usage"][1].strip()
        usage = [f".Nm gpumem-report {command}", ".Op Ar OPTIONS"]
        usage += synopsis(help_of["usage"][0].split(command, 1)[1])[1:]
    else:
        purpose = "what a program did with GPU memory"
        usage = [".Nm", ".Ar COMMAND", ".Op Ar OPTIONS", ".Ar"]
    head = [f".Dd {DATE}", f".Dt {name.upper()} 1", ".Os", ".Sh NAME", f".Nm {name}",
            f".Nd {escape(purpose)}", ".Sh SYNOPSIS", *usage]
    middle = []
    if not command:
        middle += ["The commands, each with a page of its own such as", ".Xr gpumem-report-leaks 1 :",
                   ".Bl -tag -width fragmentation"]
        for line in help_of["Commands"][1:]:
            word, text = line.split(None, 1)
            middle += [f".It Cm {word}", escape(text)]
        middle += [".El", ".Pp", "Options of all commands:"]
    else:
        middle += [".Pp", "The options:"]
    middle += option_list(help_of["Options"][1:])
    if "Formats" in help_of:
        middle += [".Pp", "The formats:"] + option_list(help_of["Formats"][1:])
    see = " ,\n".join(f".Xr {other.name.removesuffix('.1.in')} 1"
                       for other in sorted(template.parent.glob("gpumem-report-*.1.in")))
    parts = {"@HEAD@": head, "@OPTIONS@": middle, "@EXIT@": exit_status(help_of["Exit"]), "@SEE@": [see]}
    return re.sub(r"@[A-Z]+@", lambda word: "\n".join(parts[word[0]]), template.read_text())


if __name__ == "__main__":
    sys.stdout.write(page(sys.argv[1], pathlib.Path(sys.argv[2])))

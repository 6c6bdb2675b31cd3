#!/usr/bin/env python3
"""Builds the page's template with npm and writes it as a C header.

    embed.py SOURCE WORK HEADER NPM required|optional

Works on a copy of SOURCE in WORK, so that several build folders can share one source tree. Where npm
is missing (or NPM empty: not wanted) or the build fails, the header holds the reason instead and this
still succeeds unless the page is required: the tool is useful without it.
"""
import os
import shutil
import subprocess
import sys

WITHOUT = "this tool was built without its page"
AGAIN = "To have it, install nodejs (18 or newer) and npm, then: touch viewer/index.html && ninja -C BUILD"


def write(header, lacks, template):
    text = "NULL" if lacks is None else '"' + lacks.replace("\\", "\\\\").replace('"', '\\"') + '"'
    with open(header, "w", encoding="ascii", errors="replace") as out:
        out.write("/* Made by viewer/embed.py. */\n")
        out.write(f"static const char *const template_lacks = {text};\n")
        out.write("static const unsigned char template[] = {\n")
        for at in range(0, len(template), 32):
            out.write(",".join(map(str, template[at:at + 32])) + ",\n")
        out.write("};\n")


def run(arguments, work):
    environment = dict(os.environ, npm_config_loglevel="error", CI="1")
    done = subprocess.run(arguments, cwd=work, env=environment, text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    with open(os.path.join(work, "npm.log"), "a", encoding="utf-8") as log:
        log.write(f"$ {' '.join(arguments)}\n{done.stdout}\n")
    return done.returncode == 0


def copy(source, work):
    """All but node_modules, which is kept from the last time."""
    os.makedirs(work, exist_ok=True)
    for name in os.listdir(work):
        if name != "node_modules":
            path = os.path.join(work, name)
            shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)
    shutil.copytree(source, work, dirs_exist_ok=True,
                    ignore=shutil.ignore_patterns("node_modules", "dist", "__pycache__"))


def same_lock(work):
    """True when node_modules is what package-lock.json asks for."""
    try:
        with open(os.path.join(work, "package-lock.json"), "rb") as now, \
                open(os.path.join(work, "node_modules", ".installed-lock"), "rb") as then:
            return now.read() == then.read()
    except OSError:
        return False


def build(source, work, npm):
    """The template's bytes, or a sentence."""
    if not npm:
        return f"{WITHOUT}, as -Dviewer=disabled asked. To have it: meson configure BUILD -Dviewer=auto"
    if not shutil.which(npm) or not shutil.which("node"):
        return f"{WITHOUT}: npm was not found. {AGAIN}"
    copy(source, work)
    log = os.path.join(work, "npm.log")
    if not same_lock(work):
        if not run([npm, "ci"], work):
            return f"{WITHOUT}: npm ci failed ({log} says why). {AGAIN}"
        shutil.copyfile(os.path.join(work, "package-lock.json"),
                        os.path.join(work, "node_modules", ".installed-lock"))
    if not run([npm, "run", "build"], work):
        return f"{WITHOUT}: its build failed ({log} says why). {AGAIN}"
    with open(os.path.join(work, "dist", "index.html"), "rb") as page:
        return page.read()


def main():
    source, work, header, npm, need = sys.argv[1:6]
    result = build(source, work, npm)
    if isinstance(result, bytes):
        write(header, None, result)
    else:
        print(f"gpumem-report html will not work: {result}", file=sys.stderr)
        if need == "required":
            sys.exit(1)
        write(header, result, b"\0")


if __name__ == "__main__":
    main()

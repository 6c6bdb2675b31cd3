#!/usr/bin/env python3
"""Builds the page's template with npm and writes it as a C header.

    embed.py SOURCE WORK HEADER [NPM]

Works on a copy of SOURCE in WORK, so that several build folders can share one source tree. Where npm
is missing or the build fails, the header holds the reason instead and this still succeeds: the tool is
useful without the page.
"""
import os
import shutil
import subprocess
import sys

AGAIN = "install nodejs (18 or newer) and npm, then: touch viewer/index.html && ninja -C BUILD"


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
    if not npm or not shutil.which("node"):
        return f"this tool was built without its page: npm was not found. To have it, {AGAIN}"
    copy(source, work)
    log = os.path.join(work, "npm.log")
    if not same_lock(work):
        if not run([npm, "ci"], work):
            return f"this tool was built without its page: npm ci failed ({log} says why). To have it, {AGAIN}"
        shutil.copyfile(os.path.join(work, "package-lock.json"),
                        os.path.join(work, "node_modules", ".installed-lock"))
    if not run([npm, "run", "build"], work):
        return f"this tool was built without its page: its build failed ({log} says why). To have it, {AGAIN}"
    with open(os.path.join(work, "dist", "index.html"), "rb") as page:
        return page.read()


def main():
    source, work, header = sys.argv[1:4]
    result = build(source, work, sys.argv[4] if len(sys.argv) > 4 else None)
    if isinstance(result, bytes):
        write(header, None, result)
    else:
        print(f"gpumem-report html will not work: {result}", file=sys.stderr)
        write(header, result, b"\0")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""What reviewers' tools read, by those tools: SARIF by Microsoft's validator, metrics by promtool and node_exporter.

validators.py TOOL MAKE_FILES WORK prints TAP. The validator comes by npm into WORK, kept from run to run; a tool that
is not here is skipped.
"""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request

MULTITOOL = "@microsoft/sarif-multitool@5.7.0"
# What is accepted of the validator's notes and warnings: a home page (there is none yet), the version control of the
# program (not known), source text in the file, messages and rules with numbers. An error is never accepted.
ACCEPTED = {"SARIF2002", "SARIF2003", "SARIF2005", "SARIF2006", "SARIF2009", "SARIF2010", "SARIF2011", "SARIF2012",
            "SARIF2016"}
tool, make_files, npm_work = (os.path.abspath(path) for path in sys.argv[1:4])
number = failures = 0


def test(name, body):
    global number, failures
    number += 1
    try:
        skipped = body()
        print(f"ok {number} - {name}" + (f" # SKIP {skipped}" if skipped else ""))
    except Exception as error:  # noqa: BLE001, every failure is a result
        failures += 1
        print(f"not ok {number} - {name}\n# " + "\n# ".join(f"{type(error).__name__}: {error}".splitlines()[:40]))


def run(*command, status=0, text=None):
    done = subprocess.run(command, capture_output=True, text=True, input=text, check=False)
    assert done.returncode == status, f"{command[0]}: exit status {done.returncode}: {done.stdout}{done.stderr}"
    return done.stdout


def multitool():
    pattern = os.path.join(npm_work, "node_modules", "@microsoft", "sarif-multitool-linux", "Sarif.Multitool")
    if not glob.glob(pattern) and shutil.which("npm"):
        os.makedirs(npm_work, exist_ok=True)
        subprocess.run(["npm", "install", "--prefix", npm_work, "--no-audit", "--no-fund", MULTITOOL],
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=240, check=False)
    if not glob.glob(pattern):
        return None
    os.chmod(pattern, 0o755)
    return pattern


def sarif():
    validator = multitool()
    if not validator:
        return "the validator is not here, and npm does not bring it"
    gates = ["--leaks", "exit", "--max-peak", "1KiB", "--max-fragmentation", "1", "--max-retries", "0", "--fail-on-errors"]
    for name, status in ("leaks", 1), ("torch", 4), ("killed", 5), ("cut", 1):
        run(tool, "check", *gates, "--sarif", name + ".sarif", name + ".gmt", status=status)
        said = run(validator, "validate", name + ".sarif", "-o", name + ".result", "--log", "ForceOverwrite",
                   "--level", "Error;Warning;Note", "--rule-kind", "Sarif;Gh")
        found = re.findall(r"(error|warning|note) ([A-Z]+[0-9]+): (.*)", said)
        bad = [line for line in found if line[0] == "error" or line[1] not in ACCEPTED]
        assert not bad and "Done. 1 files scanned." in said, f"{name}: {bad[:5]}"
    return None


def promtool():
    if not shutil.which("promtool"):
        return "promtool is not here"
    for files in ["leaks.gmt"], ["torch.gmt"], ["rank0.gmt", "rank1.gmt"]:
        run("promtool", "check", "metrics", text=run(tool, "export", "--format", "prometheus", *files))
    return None


def node_exporter():
    exporter = shutil.which("prometheus-node-exporter") or shutil.which("node_exporter")
    if not exporter:
        return "node_exporter is not here"
    os.mkdir("textfiles")
    run(tool, "export", "--format", "prometheus", "-o", "textfiles/gpumem.prom", "rank0.gmt", "rank1.gmt")
    server = subprocess.Popen([exporter, "--collector.disable-defaults", "--collector.textfile",
                               "--collector.textfile.directory=textfiles", "--web.listen-address=127.0.0.1:0"],
                              stderr=subprocess.PIPE, text=True)
    try:
        port = None
        for line in server.stderr:
            match = re.search(r"(?:Listening on|address=)[^0-9]*127\.0\.0\.1:(\d+)", line)
            if match and match.group(1) != "0":
                port = match.group(1)
                break
        assert port, "it does not say where it listens"
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
            text = answer.read().decode()
        assert "node_textfile_scrape_error 0" in text, text[-2000:]
        assert "# TYPE gpumemtrace_peak_bytes gauge" in text and "# TYPE gpumemtrace_ooms_total counter" in text
        peaks = re.findall(r'gpumemtrace_peak_bytes\{.*rank="(\d)".*\} (\S+)', text)
        assert sorted((rank, float(value)) for rank, value in peaks) == [("0", 512.0 * 2**20), ("1", 1280.0 * 2**20)], peaks
    finally:
        server.terminate()
        server.wait()
    return None


with tempfile.TemporaryDirectory() as work:
    os.chdir(work)
    subprocess.run([make_files, "."], check=True)
    test("SARIF passes the reference validator, and GitHub's rules", sarif)
    test("promtool accepts the metrics", promtool)
    test("node_exporter serves them, with types", node_exporter)
print(f"1..{number}")
sys.exit(failures > 0)

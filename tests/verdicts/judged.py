"""One judged run: what gpumem-report says of it, and the words in which labels are written.

A label is a Python expression over the names that Judged.vocabulary() returns. README.md explains them.
"""
import fnmatch
import functools
import json
import re
import subprocess

GROWTH = ("leak.grow", "usage.creeping")
CAUSES = ("exhausted", "fragmented", "pending-frees", "limit", "other-processes", "host")


class Judged:
    """The report on one run. Everything is asked of the tool once, when a label wants it."""

    def __init__(self, tool, path, status, run_other):
        self.tool, self.path, self.status = tool, path, status
        self.run_other = run_other
        self.answers = {}

    def ask(self, *arguments):
        if arguments not in self.answers:
            self.answers[arguments] = subprocess.run(
                [self.tool, *arguments, self.path], capture_output=True, text=True, timeout=120, check=False,
                errors="replace")
        return self.answers[arguments]

    @functools.cached_property
    def document(self):
        done = self.ask("summary", "--json")
        if done.returncode:
            raise ValueError(f"summary --json ended with {done.returncode}: {done.stderr.strip()[:200]}")
        return json.loads(done.stdout)

    def text(self, *arguments):
        return self.ask(*(arguments or ("summary",))).stdout

    def check(self, *arguments):
        return self.ask("check", *arguments).returncode

    @functools.cached_property
    def sites(self):
        return {site["id"]: site for site in self.document["sites"]}

    # ---- findings ----

    def words_of(self, finding):
        """What a reader learns from a finding: its own words and the stacks of its sites."""
        said = [finding["title"], finding["evidence"] or "", *finding["advice"]]
        for name in [finding.get("site"), *finding.get("sites", [])]:
            said += [f"{frame.get('function')} {frame.get('file')}"
                     for frame in (self.sites.get(name) or {"stack": []})["stack"]]
        return "\n".join(said)

    def names(self, finding, place):
        return re.search(rf"(?<![A-Za-z0-9_])(?:{place})(?![A-Za-z0-9_])", self.words_of(finding)) is not None

    def found(self, *ids, device=None):
        return [f for f in self.document["findings"]
                if any(fnmatch.fnmatch(f["id"], i) for i in ids) and device in (None, f["device"])]

    def told(self, *words, ids="*", device=None):
        """The findings that have all the words; `a|b` is one of them."""
        return [f for f in self.found(ids, device=device)
                if all(re.search(word, self.words_of(f), re.I) for word in words)]

    # ---- growth ----

    def growth(self, device=None):
        return self.found(*GROWTH, device=device)

    def gate_fails(self, *arguments):
        return self.check("--leaks", "grow", "--allow-oom", *arguments) == 1

    def grows(self, *places, least=0, device=None, elsewhere=False, gate=True):
        """Growth is told, at these places and (unless elsewhere) nowhere else, and fails the gate."""
        found = self.growth(device)
        there = [f for f in found if any(self.names(f, place) for place in places)]
        return (all(any(self.names(f, place) for f in there) for place in places)
                and sum(f["bytes"] or 0 for f in there) >= least
                and (elsewhere or len(there) == len(self.growth()))
                and (not gate or self.gate_fails()))

    def calm(self):
        return not self.growth() and not self.gate_fails()

    def quiet(self, *ids):
        """No finding of these ids, by default no error and no warning but what a program leaves unfreed."""
        if ids:
            return not self.found(*ids)
        return not [f for f in self.document["findings"]
                    if f["severity"] != "note" and f["id"] not in ("leak.exit", "leak.pinned")]

    def cycles(self):
        """Findings about memory that only the garbage collector freed."""
        return [f for f in self.document["findings"]
                if re.search(r"garbage collect|cyclic|reference cycle|gc\.collect", self.words_of(f), re.I)
                and f["id"] not in GROWTH and f["id"] != "oom"]

    # ---- out of memory ----

    def verdicts(self):
        return [oom["verdict"] for oom in self.document["ooms"]]

    def all_are(self, verdict):
        return bool(self.verdicts()) and set(self.verdicts()) == {verdict}

    def advised(self, *words):
        """Whether the advice of the last out-of-memory event has all the words."""
        advice = "\n".join(self.document["ooms"][-1]["advice"]) if self.document["ooms"] else ""
        return all(re.search(word, advice, re.I) for word in words)

    def asked_by(self, place):
        """Whether the last out-of-memory event was met below this function."""
        return bool(self.document["ooms"]) and any(
            place in (frame.get("function") or "") for frame in self.document["ooms"][-1]["stack"])

    def blames(self, place):
        """The cause is named where it is read first: in the Next line, or in the event's first advice."""
        advice = self.document["ooms"][-1]["advice"][:1] if self.document["ooms"] else []
        first = self.text("summary").splitlines()[2:3]
        return any(re.search(rf"\b(?:{place})\b", line) for line in [*advice, *first])

    # ---- claims, for precision ----

    def claims(self):
        """What the product says is wrong, in the classes that precision is counted for."""
        said = set()
        if self.growth() or self.gate_fails():
            said.add("growth")
        if self.cycles():
            said.add("cycles")
        for claim, ids in (("unstable", "usage.unstable"), ("fragmentation", "fragmentation.high"),
                           ("thrash", "cache.thrash"), ("pressure", "memory-pressure")):
            if self.found(ids):
                said.add(claim)
        return said | {f"oom: {verdict}" for verdict in self.verdicts() if verdict in CAUSES}

    def vocabulary(self):
        kib = 1 << 10
        return {
            "doc": self.document, "status": self.status, "KiB": kib, "MiB": kib ** 2, "GiB": kib ** 3,
            "other": self.run_other,
            **{name: getattr(self, name) for name in (
                "text", "check", "found", "told", "growth", "grows", "gate_fails", "calm", "quiet", "cycles",
                "verdicts", "all_are", "advised", "asked_by", "blames")},
            "len": len, "any": any, "all": all, "set": set, "sum": sum, "max": max, "min": min, "sorted": sorted,
        }

#!/usr/bin/env python3
"""check.py [WORD...] < DOCUMENT: whether a document of gpumem-report (docs/contract.md, section 4) contradicts itself.

Parts add up to wholes, holes fit into what is reserved, no part exceeds its whole, figures that stand in two
places are equal, counts agree, times lie within the run. Prints a line for each contradiction; exit status 1
if there is one. The words are the command that wrote the document, for the message. Several lines may hold a
document each.

Of a document whose lists `--top` bounds, those are as short as it says, and each site that it names is there.

Figures that are null are not known and are not compared. Of a file that is cut or damaged, or that dropped
events, sums are not compared either: parts of them are missing.
"""
import json
import sys

# Of a series of the timeline: the part of the document with its level, the peak there and the figure now.
SERIES = {
    "tracked": ("totals", "peak_bytes", "current_bytes"),
    "torch_allocated": ("torch", "allocated_peak_bytes", "allocated_bytes"),
    "torch_reserved": ("torch", "reserved_peak_bytes", "reserved_bytes"),
}
DEVICE_KINDS = ("device", "managed", "array", "async", "vmm", "graph")
SLACK_S = 1e-3  # times are rounded to microseconds, durations are taken a moment earlier or later
PERCENT = 0.01
# What --top leaves whole: rows for each device, level, gate or file, and lists that are one thing each.
WHOLE = {"devices", "totals", "usage", "pools", "vmm", "torch", "fragmentation", "holes", "ledger", "rows", "gates", "timeline",
         "runs", "baseline", "stack", "first_free_stack", "chain", "command", "ranks", "advice"}
NAMES_SITES = {"site", "sites", "grow", "held", "old_site", "new_site", "oom_site"}


class Checker:
    def __init__(self, document, words=()):
        self.document, self.broken, self.words = document, [], words
        options = {word.split("=")[0] for word in words}
        file = document.get("file") or {}
        self.whole = bool(file.get("complete")) and not file.get("dropped_events")
        # An update that a kill cut short is missing from the peak's holes.
        self.ended = (document.get("process") or {}).get("end") == "exit"
        self.has_all_sites = self.whole and not options & {"--device", "--kind", "--level", "--since", "--until", "--min-bytes", "--top"}
        self.sampled = bool((document.get("tracer") or {}).get("sample_bytes"))  # figures of sites are estimates
        self.has_all_sites = self.has_all_sites and not self.sampled
        self.most = self.bound(words)
        self.of_a_moment = "--at" in options  # its timeline is that of the run until then, in points of some width

    @staticmethod
    def bound(words):
        """The N of --top N, None without it."""
        for word, following in zip(words, (*words[1:], "")):
            if word == "--top" or word.startswith("--top="):
                return int(word[6:] or following)
        return None

    def fail(self, where, what):
        self.broken.append(f"{where}: {what}")

    def known(self, *values):
        return all(value is not None for value in values)

    def at_most(self, where, part, whole, names):
        if self.known(part, whole) and part > whole:
            self.fail(where, f"{names[0]} {part} > {names[1]} {whole}")

    def ordered(self, where, row, *names):
        """Each of the figures is at most the next one."""
        for part, whole in zip(names, names[1:]):
            self.at_most(where, row.get(part), row.get(whole), (part, whole))

    def equal(self, where, one, other, names):
        if self.known(one, other) and one != other:
            self.fail(where, f"{names[0]} {one} is not {names[1]} {other}")

    def near(self, where, one, other, slack, names):
        if self.known(one, other) and abs(one - other) > slack:
            self.fail(where, f"{names[0]} {one} is not {names[1]} {other}")

    def moment(self, where, time):
        process = self.document.get("process") or {}
        duration = process.get("duration_s") if process.get("end") != "running" else None  # it is read while it goes on
        if self.known(time) and time < 0:
            self.fail(where, f"time {time} is before the first event")
        if self.known(time, duration) and time > duration + SLACK_S:
            self.fail(where, f"time {time} is after the end, {duration}")

    # ---- parts of the document ----

    def usage(self):
        for row in self.document.get("usage", []):
            where = f"usage {row['device']} {row['kind']}"
            self.ordered(where, row, "current_bytes", "peak_bytes", "allocated_bytes")
            self.balance(where, row["allocated_bytes"], row["freed_bytes"], row["current_bytes"], "bytes")
            self.balance(where, row["allocations"], row["frees"], row["current_count"], "count")

    def balance(self, where, came, went, stays, what):
        if self.known(came, went, stays) and came - went != stays:
            self.fail(where, f"{what}: {came} allocated - {went} freed is not {stays} live")

    def totals(self):
        devices = {device["index"]: device for device in self.document.get("devices", [])}
        for total in self.document.get("totals", []):
            where = f"totals {total['device']}"
            device = devices.get(total["device"])
            if device is None:
                self.fail(where, "devices[] does not have it")
                continue
            size = device["capacity_bytes"] or device["total_bytes"]
            if size and total["physical_peak_bytes"] is not None:
                self.near(where, total["utilization_percent"], 100 * total["physical_peak_bytes"] / size, PERCENT,
                          ("utilization_percent", "physical_peak / capacity"))
            self.ordered(where, total, "current_bytes", "peak_bytes")
            self.ordered(where, total, "physical_bytes", "physical_peak_bytes")
            if "processes" not in total:
                self.moment(where, total["peak_at_s"])
            rows = [row for row in self.document.get("usage", [])
                    if row["device"] == total["device"] and row["owned"] and row["kind"] in DEVICE_KINDS]
            if self.whole and rows:
                for figure in "current_bytes", "current_count":
                    self.adds_up(where, figure, [row[figure] for row in rows], total[figure])
                peaks = [row["peak_bytes"] for row in rows]
                if self.known(total["peak_bytes"], *peaks):
                    self.at_most(where, max(peaks), total["peak_bytes"], ("a kind's peak", "the peak"))
                    self.at_most(where, total["peak_bytes"], sum(peaks), ("the peak", "the sum of kinds' peaks"))

    def adds_up(self, where, what, parts, whole):
        if self.known(whole, *parts) and sum(parts) != whole:
            self.fail(where, f"{what}: the parts add up to {sum(parts)}, the whole is {whole}")

    def pools(self):
        for pool in self.document.get("pools", []):
            where = f"pools {pool['device']} {pool['pool']}"
            self.ordered(where, pool, "used_bytes", "reserved_bytes", "reserved_peak_bytes")
            self.ordered(where, pool, "used_bytes", "used_peak_bytes", "reserved_peak_bytes")
            self.ordered(where, pool, "pending_free_bytes", "reserved_bytes")

    def vmm(self):
        for row in self.document.get("vmm", []):
            for usage in self.of_device("usage", row["device"]):
                if self.whole and usage["kind"] == "vmm":
                    where = f"vmm {row['device']}"
                    self.equal(where, row["created_bytes"], usage["current_bytes"], ("created", "usage's current"))
                    self.equal(where, row["handles"], usage["current_count"], ("handles", "usage's count"))

    def torch(self):
        for row in self.document.get("torch", []):
            where = f"torch {row['device']}"
            if (row["segments"] == 0 or self.sampled) and row["reserved_bytes"]:  # PyTorch's word alone: the driver was not seen
                continue
            self.ordered(where, row, "allocated_bytes", "reserved_bytes", "reserved_peak_bytes")
            self.ordered(where, row, "allocated_bytes", "active_bytes", "reserved_bytes")
            self.ordered(where, row, "allocated_bytes", "allocated_peak_bytes", "reserved_peak_bytes")
            self.ordered(where, row, "requested_bytes",  # until no stream uses a freed block any more
                         "allocated_bytes" if row["active_bytes"] is None else "active_bytes")
            self.ordered(where, row, "reserved_peak_bytes", "reserved_total_bytes")
            self.balance(where, row["allocated_total_bytes"], row["freed_total_bytes"], row["allocated_bytes"], "bytes")
            if self.known(row["reserved_bytes"], row["allocated_bytes"]):
                idle = row["reserved_bytes"] - row["allocated_bytes"]
                for part in "inactive_split_bytes", "releasable_bytes", "largest_free_bytes":
                    self.at_most(where, row[part], idle, (part, "reserved - allocated"))
                if self.known(row["releasable_bytes"], row["inactive_split_bytes"]):
                    self.at_most(where, row["inactive_split_bytes"] + row["releasable_bytes"], idle,
                                 ("inactive_split_bytes + releasable_bytes", "reserved - allocated"))
            if row["segments"] and row["reserved_bytes"] == 0:
                self.fail(where, f"{row['segments']} segments of no bytes")
            for level in self.of_device("fragmentation", row["device"]):
                if level["level"] == "torch":
                    self.equal(where, row["reserved_bytes"], level["reserved_bytes"], ("reserved", "fragmentation's"))
                    used = row["allocated_bytes"] if row["active_bytes"] is None else row["active_bytes"]
                    self.equal(where, used, level["used_bytes"], ("allocated or active", "fragmentation's used"))
                    self.equal(where, row["largest_free_bytes"], level["largest_free_bytes"],
                               ("largest_free", "fragmentation's"))
                    if level["at_peak"]:
                        self.equal(where, row["allocated_peak_bytes"], level["at_peak"]["used_bytes"],
                                   ("allocated_peak", "fragmentation's used at_peak"))

    def of_device(self, part, device):
        return [row for row in self.document.get(part, []) if row["device"] == device]

    def holes(self, where, holes):
        """A level with holes: now, at its peak, at an OOM."""
        reserved, used, free = holes["reserved_bytes"], holes["used_bytes"], holes.get("free_bytes")
        self.at_most(where, used, reserved, ("used", "reserved"))
        if self.known(reserved, used):
            self.equal(where, free, reserved - used, ("free_bytes", "reserved - used"))
            self.at_most(where, holes["largest_free_bytes"], reserved - used, ("largest_free_bytes", "reserved - used"))
            if reserved:
                self.near(where, holes["percent"], 100 * (reserved - used) / reserved, PERCENT,
                          ("percent", "(reserved - used) / reserved"))
        if self.known(free, holes["largest_free_bytes"]) and free:
            self.near(where, holes.get("external_percent"), 100 - 100 * holes["largest_free_bytes"] / free, PERCENT,
                      ("external_percent", "1 - largest / free"))

    def fragmentation(self):
        for level in self.document.get("fragmentation", []):
            where = f"fragmentation {level['device']} {level['level']}"
            if level["level"] == "pool" and self.whole:
                pools = self.of_device("pools", level["device"])
                for figure in "reserved_bytes", "used_bytes":
                    self.adds_up(where, f"pools' {figure}", [pool[figure] for pool in pools], level[figure])
            self.holes(where, level)
            self.pinners(where, level)
            if level["at_peak"] and self.ended:
                self.holes(where + " at_peak", level["at_peak"])
                self.pinners(where + " at_peak", level["at_peak"])
                self.moment(where + " at_peak", level["at_peak"]["time_s"])

    def pinners(self, where, level):
        for pin in level["pinned_by"]:
            self.at_most(where, pin["hole_bytes"], level["free_bytes"], (f"holes pinned by {pin['site']}", "free"))
            self.at_most(where, pin["bytes"], level["used_bytes"], (f"bytes of pinner {pin['site']}", "used"))

    def ooms(self):
        before = 0
        for number, oom in enumerate(self.document.get("ooms", [])):
            where = f"ooms[{number}]"
            self.moment(where, oom["time_s"])
            if self.known(oom["time_s"]):
                if oom["time_s"] < before:
                    self.fail(where, f"at {oom['time_s']}, after one at {before}")
                before = oom["time_s"]
            self.at_most(where, oom["free_bytes"], oom["total_bytes"], ("free", "total"))
            if self.known(oom["tracked_bytes"], oom["free_bytes"]):
                self.at_most(where, oom["tracked_bytes"] + oom["free_bytes"], oom["total_bytes"],
                             ("tracked + free", "total"))
            sites = {site["id"]: site for site in self.document.get("sites", [])}
            for top in oom["top_sites"]:
                if sites and top["site"] not in sites:
                    self.fail(where, f"there is no site {top['site']}")
                elif sites:
                    self.at_most(where, top["bytes"], sites[top["site"]]["peak_bytes"],
                                 (f"bytes of site {top['site']}", "its peak"))
            for holes in oom["holes"]:
                self.holes(f"{where} {holes['level']}", holes)
            old = oom.get("fragmentation")
            for holes in oom["holes"]:
                if old and holes["level"] == "torch":
                    for figure in "reserved_bytes", "used_bytes", "largest_free_bytes", "percent":
                        self.equal(where, old[figure], holes[figure], (f"fragmentation.{figure}", "holes'"))
        if len(self.document.get("ooms", [])) > 64:
            self.fail("ooms", "more than 64")
        retries = self.document.get("retries")
        if retries:
            self.at_most("retries", retries["recovered"], retries["attempts"], ("recovered", "attempts"))
            for failed in retries.get("failed", []):
                self.moment("retries.failed", failed["time_s"])
            if self.whole and self.most is None and retries.get("exhausted") is not None:
                self.equal("retries", retries["exhausted"],
                           len(self.document["ooms"]) + (retries.get("ooms_not_kept") or 0),
                           ("exhausted", "ooms[] and those not kept"))
            torch = self.document.get("torch", [])
            if self.whole and torch:
                for ours, theirs in ("attempts", "alloc_retries"), ("exhausted", "ooms"):
                    figures = [row[theirs] for row in torch]
                    if self.known(retries[ours], *figures):
                        self.at_most("retries", sum(figures), retries[ours], (f"torch's {theirs}", ours))

    def sites(self):
        sites = self.document.get("sites", [])
        for site in sites:
            where = f"site {site['id']}"
            self.ordered(where, site, "live_bytes", "peak_bytes", "allocated_bytes")
            self.ordered(where, site, "bytes_at_peak", "peak_bytes")
            self.balance(where, site["allocations"], site["frees"], site["live_count"], "count")
            if self.known(site["live_count"], site["live_bytes"]) and not site["live_count"] and site["live_bytes"]:
                self.fail(where, f"no live allocation has {site['live_bytes']} bytes")
            self.ordered(where, site, "first_s", "last_s")
            self.moment(where, site["last_s"])
            live, verdict = site["live_count"], site["verdict"]
            if self.known(live) and verdict == "released" and live:
                self.fail(where, f"released with {live} live allocations")
            before = None
            for window in site["windows"]:
                self.ordered(where + " window", window, "min_bytes", "last_bytes", "max_bytes")
                self.at_most(where, window["max_bytes"], site["peak_bytes"], ("a window's most", "the peak"))
                self.moment(where + " window", window["start_s"])
                if self.known(before, window["start_s"]) and window["start_s"] < before:
                    self.fail(where, "windows are not in order")
                before = window["start_s"]
            if site["windows"] and self.whole:
                self.equal(where, site["windows"][-1]["last_bytes"], site["live_bytes"],
                           ("the last window's end", "live"))
                self.equal(where, max(window["max_bytes"] for window in site["windows"]), site["peak_bytes"],
                           ("the highest window", "the peak"))

    def levels(self):
        """Sites, categories and usage against the levels that they are parts of."""
        sites = self.document.get("sites", []) if self.has_all_sites else []
        for row in self.document.get("usage", []) if sites else []:
            where = f"usage {row['device']} {row['kind']}"
            mine = [s for s in sites if (s["level"], s["kind"], s["device"]) == ("driver", row["kind"], row["device"])]
            for part, whole in (("live_bytes", "current_bytes"), ("live_count", "current_count"),
                                ("allocated_bytes", "allocated_bytes"), ("allocations", "allocations"),
                                ("frees", "frees"), ("failures", "failures")):
                self.adds_up(where, f"sites' {part}", [s.get(part) for s in mine], row[whole])
        for total in self.document.get("totals", []):
            device = total["device"]
            owned = [s for s in sites if s["level"] == "driver" and s["device"] == device and s["kind"] in DEVICE_KINDS]
            if sites:
                self.peak_adds_up(f"totals {device}", "sites' bytes_at_peak", owned, total["peak_bytes"])
            self.categories("driver", device, total["current_bytes"], total["peak_bytes"])
        pinned = [s for s in sites if s["level"] == "driver" and s["kind"] == "pinned"]
        for row in self.document.get("usage", []):
            if row["kind"] == "pinned" and pinned:
                self.peak_adds_up("usage pinned", "sites' bytes_at_peak", pinned, row["peak_bytes"])
        for row in self.document.get("torch", []):
            device, where = row["device"], f"torch {row['device']}"
            blocks = [s for s in sites if s["level"] == "torch" and s["device"] == device]
            if blocks:
                self.adds_up(where, "sites' live_bytes", [s["live_bytes"] for s in blocks], row["allocated_bytes"])
                self.peak_adds_up(where, "sites' bytes_at_peak", blocks, row["allocated_peak_bytes"])
                self.adds_up(where, "sites' allocations", [s["allocations"] for s in blocks], row["allocations"])
                self.adds_up(where, "sites' frees", [s["frees"] for s in blocks], row["frees"])
                self.adds_up(where, "sites' allocated_bytes", [s["allocated_bytes"] for s in blocks],
                             row["allocated_total_bytes"])
            self.categories("torch", device, row["allocated_bytes"], row["allocated_peak_bytes"])

    def is_running(self):
        """Its file is not copied at one instant: what is live is counted again, a peak cannot be."""
        return (self.document.get("process") or {}).get("end") == "running"

    def peak_adds_up(self, where, what, rows, peak):
        if not self.is_running():
            self.adds_up(where, what, [row["bytes_at_peak"] for row in rows], peak)

    def categories(self, level, device, current, peak):
        rows = [row for row in self.document.get("categories", []) if row["device"] == device and row["level"] == level]
        if rows and self.whole and not self.sampled and self.most is None:
            where = f"categories {device} {level}"
            self.adds_up(where, "current_bytes", [row["current_bytes"] for row in rows], current)
            self.peak_adds_up(where, "bytes_at_peak", rows, peak)

    def leaks(self):
        leaks = self.document.get("leaks")
        if not leaks:
            return
        sites = {site["id"]: site for site in self.document.get("sites", [])}
        for verdict in "grow", "held":
            for name in leaks.get(verdict) or []:
                site = sites.get(name)
                if site is None:
                    self.fail("leaks", f"{verdict}: there is no site {name}")
                elif site["verdict"] != verdict:
                    self.fail("leaks", f"{verdict}: site {name} is {site['verdict']}")
        if self.has_all_sites and sites:
            owned = [s for s in sites.values() if s["level"] == "driver" and s["kind"] in DEVICE_KINDS + ("pinned",)]
            cached = [s["live_bytes"] for s in sites.values() if s["level"] == "driver" and s["verdict"] == "cached"]
            self.adds_up("leaks", "cached sites", cached, leaks["cached_bytes"])
            for part, whole in ("exit_bytes", "live_bytes"), ("exit_count", "live_count"):
                live = [site[whole] for site in owned]
                if self.known(leaks[part], *live):
                    self.at_most("leaks", leaks[part], sum(live), (part, "what is live"))
                    if not self.document.get("marks"):
                        self.equal("leaks", leaks[part], sum(live), (part, "what is live"))

    def ledger(self):
        for row in self.document.get("ledger", []):
            if self.known(row["process_used_bytes"], row["unexplained_bytes"]):
                self.adds_up(f"ledger {row['device']}", "rows and unexplained",
                             [part["bytes"] for part in row["rows"]] + [row["unexplained_bytes"]],
                             row["process_used_bytes"])

    def phases(self):
        for row in self.document.get("phases", []):
            self.ordered(f"phases {row['device']} {row['phase']}", row, "retained_bytes", "peak_bytes")

    def marks(self):
        before = 0
        peaks = [total["peak_bytes"] for total in self.document.get("totals", [])]
        for mark in self.document.get("marks", []):
            where = f"mark {mark['name']}"
            self.moment(where, mark["time_s"])
            if peaks and self.known(*peaks):
                self.at_most(where, mark["current_bytes"], sum(peaks), ("current", "the peaks"))
            if self.known(mark["time_s"]):
                if mark["time_s"] < before:
                    self.fail(where, "marks are not in order")
                before = mark["time_s"]

    def timeline(self):
        for line in self.document.get("timeline", []):
            where = f"timeline {line['device']} {line['level']} {line['series']}"
            if not len(line["min"]) == len(line["max"]) == len(line["last"]):
                self.fail(where, "min, max and last differ in length")
            for least, most, last in zip(line["min"], line["max"], line["last"]):
                if not least <= last <= most:
                    self.fail(where, f"last {last} is not between {least} and {most}")
                    break
            part, peak, now = SERIES.get(line["series"], (None, None, None))
            rows = self.of_device(part, line["device"]) if self.whole and not self.of_a_moment and line["max"] else []
            for row in rows:
                if not self.is_running():
                    self.equal(where, max(line["max"]), row[peak], ("its highest", peak))
                self.equal(where, line["last"][-1], row[now], ("its last", now))

    def findings(self):
        sites = {site["id"] for site in self.document.get("sites", [])}
        for finding in self.document.get("findings", []):
            if finding["site"] is not None and sites and finding["site"] not in sites:
                self.fail(f"finding {finding['id']}", f"there is no site {finding['site']}")

    def lists(self):
        """What --top bounds."""
        document = {key: value for key, value in self.document.items() if key not in ("plan", "runs", "whatif", "whatif_run")}
        if self.most is not None:
            named = {name for _, name in self.named(document)}
            there = {site["id"] for site in document.get("sites", [])}
            if len(there - named) > self.most:
                self.fail("sites", f"{len(there)} of which {len(there & named)} are named, with --top {self.most}")
            for name in named - there if there or self.most else ():
                self.fail("sites", f"there is no site {name}")
            self.short("", {key: value for key, value in document.items() if key != "sites"})
            for site in document.get("sites", []):
                self.short("sites", {"windows": site["windows"]})

    def named(self, value, key=""):
        if isinstance(value, str) and key in NAMES_SITES:
            yield key, value
        for inner, part in value.items() if isinstance(value, dict) else ((key, part) for part in value) \
                if isinstance(value, list) else ():
            yield from self.named(part, inner)

    def short(self, where, value, key=""):
        if isinstance(value, list):
            if key not in WHOLE and len(value) > self.most:
                self.fail(f"{where}.{key}", f"{len(value)} entries with --top {self.most}")
            for part in value:
                self.short(where, part, key)
        elif isinstance(value, dict):
            for name, part in value.items():
                self.short(f"{where}.{key}", part, name)

    def gates(self):
        for gate in self.document.get("gates", []):
            if self.known(gate["limit"], gate["value"]) and gate["passed"] != (gate["value"] <= gate["limit"]):
                self.fail(f"gate {gate['gate']}", f"passed is {gate['passed']} with {gate['value']} of {gate['limit']}")

    def plan(self):
        plan = self.document.get("plan")
        while plan:
            self.adds_up("plan", "rows", [row["bytes"] for row in plan["rows"]], plan["total_bytes"])
            self.at_most("plan", plan["safe_batch"], plan["max_batch"], ("safe_batch", "max_batch"))
            for row in plan["fits"]:
                if row["fits"] and row["margin_percent"] < 0:
                    self.fail("plan", f"{row['gpu']} fits with a margin of {row['margin_percent']}")
            plan = plan.get("estimate")

    def job(self):
        runs = [run for run in self.document.get("runs", []) if not (run.get("process") or {}).get("superseded")]
        job = self.document.get("job")
        if job and runs and all((run.get("file") or {}).get("complete") for run in runs):
            for figure in "current_bytes", "current_count":
                parts = [total[figure] for run in runs for total in run["totals"]]
                whole = [total[figure] for total in job["totals"]]
                if self.known(*parts, *whole):
                    self.equal("job", sum(parts), sum(whole), (f"ranks' {figure}", "the job's"))

    def check(self):
        if self.document.get("diff"):
            return self.broken
        for part in (self.usage, self.totals, self.pools, self.vmm, self.torch, self.fragmentation, self.ooms,
                     self.sites, self.levels, self.leaks, self.ledger, self.phases, self.marks, self.timeline, self.findings,
                     self.lists, self.gates, self.plan, self.job):
            part()
        for number, run in enumerate(self.document.get("runs", [])):
            self.broken += [f"runs[{number}] {line}" for line in Checker(run, self.words).check()]
        return self.broken


def main():
    text = sys.stdin.read()
    try:
        documents = [json.loads(text)]
    except ValueError:
        documents = [json.loads(line) for line in text.splitlines()]
    broken = [line for document in documents for line in Checker(document, sys.argv[1:]).check()]
    for line in broken[:50]:
        print(f"the document of `{' '.join(sys.argv[1:])}` contradicts itself: {line}", file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())

"""Why a prediction missed, from two snapshots: that of the recorded run and that of the run under the setting."""
import json
import os
import pickle
import subprocess


def trace_of(path):
    with open(path, "rb") as file:
        return max(pickle.load(file)["device_traces"], key=len)


def asked(trace):
    """The program's requests, and between them the frees, each named by the number of its request.

    The order of frees that follow each other is left out, because it makes no difference to what is free then;
    autocast's cache, for one, frees in an order that depends on addresses.
    """
    numbers, found = {}, [set()]
    for event in trace:
        if event["action"] == "alloc":
            numbers[event["addr"]] = len(found)
            found += [event["size"], set()]
        elif event["action"] == "free_requested":
            found[-1].add(numbers.get(event["addr"]))
    return found


def waited(trace):
    """After how many requests and frees each free that waited for a stream was completed."""
    found, count, last = [], 0, None
    for event in trace:
        if event["action"] == "free_completed" and event["addr"] != last:
            found.append(count)
        count += event["action"] in ("alloc", "free_requested")
        last = event["addr"] if event["action"] == "free_requested" else None
    return found


def replays(bundle, path, measured, setting):
    """Whether the model does what this run did, given the addresses of its segments."""
    done = subprocess.run([os.path.join(bundle, "gpumem-report"), "whatif", "--json", "--conf", setting, path],
                          capture_output=True, text=True, timeout=120, check=False)
    if done.returncode:
        return False
    run = json.loads(done.stdout)["whatif_run"]
    return run["reproduced"] and run["reserved_peak_bytes"] == measured["reserved_peak"]


def why(bundle, recorded, path, measured, setting):
    """requests: the program asked for something else than in the recorded run; streams: frees waited longer or
    shorter; placement: the run is replayed to the byte once the addresses of its segments are known; model: the
    model does not do what this run did."""
    first, second = trace_of(recorded), trace_of(path)
    if asked(first) != asked(second):
        return "requests"
    if waited(first) != waited(second):
        return "streams"
    return "placement" if replays(bundle, path, measured, setting) else "model"

#!/usr/bin/env python3
"""The verdicts about programs as people write them, on a GPU: workloads.py BUNDLE OUT [PATTERN...]

BUNDLE is the folder of bundle.sh. The programs are in workloads/, one function each (of service.cu, which bundle.sh builds, too); the table below says what is
right to say of each, in the words of ../../verdicts/README.md. Prints a line `ok NAME` or `FAIL NAME: ...` for each
program, below it the findings' titles, and a sum. OUT gets each program's report, document and output, and the
recordings of the wrong ones as far as they are small. JOBS programs run at a time (8); none is begun after LIMIT
seconds (900).
"""
import concurrent.futures
import fnmatch
import json
import lzma
import os
import pathlib
import shutil
import subprocess
import sys
import time
import typing

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "verdicts"))
import judged  # noqa: E402, the words of labels

SMALL = 1 << 20  # bytes of a compressed recording
DEVICE = {"GPUMEMTRACE_CAPACITY": "4GiB"}  # a device of that size, so that the programs fill it side by side
GROWING = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
PLATFORM = {**GROWING, "XLA_PYTHON_CLIENT_ALLOCATOR": "platform"}
EXPANDABLE = {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}
ASYNC = {"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"}


class Case(typing.NamedTuple):
    name: str
    program: str
    function: str
    label: str
    about: frozenset  # what is to be said, for precision
    also: frozenset  # what may be said too
    ended: int
    environment: dict
    gates: str = ""  # run by `gpumem-report run --check`


ALL = []


def add(program, functions, label, about=(), also=(), ended=0, suffix="", gates="", **environment):
    about, also = (frozenset({some} if isinstance(some, str) else some) for some in (about, also))
    for function in functions.split():
        ALL.append(Case(f"{program}.{function}{suffix}", program, function, label, about, also, ended, environment, gates))


def leak(program, function, place, least=100, also=(), **others):
    add(program, function, f"grows({place!r}, least={least} * MiB)", "growth", also, **others)


def healthy(program, functions, also=(), **others):
    add(program, functions, "quiet()", (), also, **others)


def oom(program, function, cause, label="True", about=(), ended=1, **others):
    add(program, function, f"all_are({cause!r}) and {label}", {f"oom: {cause}", *about}, {"pressure", "unstable"}, ended, **others)


# ---- transformers ----

HF = "with_transformers"
leak(HF, "trainer_keeps_logits", "compute_loss")
leak(HF, "trainer_saves_copies", "on_step_end")
leak(HF, "chat_forgets", "answer")
leak(HF, "prefixes_unbounded", "prefill")
leak(HF, "validation_with_graph", "validate")
leak(HF, "log_keeps_outputs", "train_and_log")
leak(HF, "evaluations_kept", "evaluate_all")
leak(HF, "features_kept", "extract|remember")
leak(HF, "reload_keeps", "load_model|gpt2")
leak(HF, "sweep_keeps_models", "sweep|gpt2")
healthy(HF, "trainer trainer_accumulates generate_static generate_beams prefixes_few mixed_precision checkpointing "
        "low_rank warm_then_all validation_rightly log_keeps_items evaluations_reduced vision features_cleared "
        "reload_replaces sweep_keeps_figures average")
healthy(HF, "generate_requests chat_bounded", also="unstable")
healthy(HF, "mixed_precision", suffix=".expandable", **EXPANDABLE)
healthy(HF, "mixed_precision", suffix=".async", **ASYNC)
leak(HF, "log_keeps_outputs", "train_and_log", suffix=".expandable", **EXPANDABLE)
leak(HF, "log_keeps_outputs", "train_and_log", suffix=".async", **ASYNC)
oom(HF, "oom_weights", "exhausted", "blames('llama|oom_weights') and not growth()", **DEVICE)
oom(HF, "oom_batch", "exhausted", "advised('activations') and not growth()", about={"fragmentation"}, **DEVICE)
oom(HF, "oom_first_step", "exhausted", "advised('optimizer')", **DEVICE)
oom(HF, "oom_cache", "exhausted", "asked_by('answer')", **DEVICE)
oom(HF, "oom_leak", "exhausted", "blames('train_and_log') and growth()", about={"growth"}, **DEVICE)
oom(HF, "oom_validation", "exhausted", "blames('validate') and growth()", about={"growth"}, **DEVICE)
oom(HF, "oom_second_model", "exhausted", "asked_by('oom_second_model') and not growth()", **DEVICE)
oom(HF, "oom_skipped", "exhausted", "calm() and len(found('oom')) == 1 and check() == 4 and check('--allow-oom') == 0",
    ended=0, **DEVICE)
oom(HF, "oom_largest_batch", "exhausted", "calm() and len(found('oom')) == 1", ended=0, **DEVICE)
oom(HF, "oom_limit", "limit", "not growth()")

# ---- PyTorch and its companions ----

PT = "with_torch"
for function, place, least in (
        ("truncated_forgotten", "backpropagate", 100), ("function_attribute", "apply_function", 400),
        ("adversarial_keeps", "adversarial", 100), ("masks_by_length", "mask", 300),
        ("closures_kept", "closures_kept|schedule", 400), ("errors_kept", "process|errors_kept", 400),
        ("episodes_kept", "play", 300), ("replay_unbounded", "replay", 100),
        ("trees_uncollected", "__init__", 300), ("futures_kept", "infer", 300), ("sessions_hang_up", "handle", 100),
        ("pinned_kept", "pinned_kept", 150), ("optimizers_kept", "fit", 200), ("metric_never_reset", "metrics", 100),
        ("lightning_keeps", "training_step", 100)):
    leak(PT, function, place, least, also={"fragmentation", "unstable"})  # of the pool, and of threads, beside the leak
leak(PT, "graphs_each_size", "capture|run", also="fragmentation")
add(PT, "norms_kept", "grows('log_norms', least=1 * MiB, gate=False) and "
    "check('--leaks', 'grow', '--min-bytes', '256KiB') == 1", "growth")
healthy(PT, "truncated function_saved adversarial_clears masks_by_bucket tables_extended closures_called errors_as_text "
        "episodes_dropped replay_bounded futures_taken graphs_few overlapped pinned_ring recorded "
        "optimizers_renewed memory_of_lbfgs metric_reset resnet lightning_clears", also="unstable")
add(PT, "trees_collected", "calm() and any(cycles())", "cycles")
healthy(PT, "lengths_vary", also="unstable")
healthy(PT, "lengths_vary", also="unstable", suffix=".expandable", **EXPANDABLE)
leak(PT, "replay_unbounded", "replay", suffix=".expandable", **EXPANDABLE)
oom(PT, "oom_attention", "exhausted", "asked_by('oom_attention') and not growth()", **DEVICE)
oom(PT, "oom_holes", "fragmented", "advised('oom_holes|expandable')", about={"growth", "fragmentation"}, **DEVICE)
oom(PT, "oom_replay", "limit", "growth() and advised('replay')", about={"growth"})
oom(PT, "oom_retried", "exhausted", "not growth()", **DEVICE)

# ---- CuPy, Numba, JAX ----

CP, JX = "with_cupy", "with_jax"
leak(CP, "without_pool_kept", "simulate", 150)
leak(CP, "dlpack_kept", "tensors", 200)
leak(CP, "numba_kept", "numba_kept", 150)
# what is kept in a framework's pool is seen as the pool's growth, if the pool takes it piece by piece
leak(CP, "frames_kept", "simulate", 400)
healthy(CP, "frames_fetched pool_emptied without_pool plans_by_length dlpack_dropped numba_dropped", also="thrash")
oom(CP, "oom_frames", "exhausted", "blames('simulate')", **DEVICE)
oom(CP, "oom_matrix", "exhausted", "asked_by('oom_matrix') and not growth()", **DEVICE)
oom(CP, "oom_pinned", "host")
leak(JX, "weights_kept", "train", suffix=".platform", **PLATFORM)
leak(JX, "predictions_kept", "predictions_kept", suffix=".platform", **PLATFORM)
leak(JX, "tables_kept", "table|tables_kept", suffix=".platform", **PLATFORM)
for function in ("weights_kept", "oom_history"):
    add(JX, function, "any(told('not visible', 'train', ids='pool.opaque')) and 'nothing to do' not in text()",
        ended=function == "oom_history", suffix=".growing", **GROWING, **(DEVICE if function == "oom_history" else {}))
healthy(JX, "training training_donated shapes_vary", suffix=".growing", **GROWING)
healthy(JX, "training training_donated shapes_vary", also="thrash", suffix=".platform", **PLATFORM)
oom(JX, "oom_history", "exhausted", "blames('train')", about={"growth"}, suffix=".platform", **PLATFORM, **DEVICE)
oom(JX, "oom_batch", "exhausted", "asked_by('oom_batch')", suffix=".platform", **PLATFORM, **DEVICE)

# ---- gates ----

add(CP, "never_freed", "check() == 1 and check('--leaks', 'exit') == 1 and check('--leaks', 'grow') == 0 and "
    "check('--leaks', 'off', '--max-peak', '32MiB') == 5 and check('--leaks', 'off', '--max-peak', '2GiB') == 0")
add(CP, "pool_freed", "check('--leaks', 'exit') == 0")
add(PT, "overlapped", "check() == 0 and check('--max-peak', '1MiB') == 5 and check('--max-peak', '8GiB', "
    "'--max-retries', '0', '--max-fragmentation', '99') == 0 and check('--leaks', 'grow', '--max-growth', '1MiB') == 0",
    suffix=".gates")
add(PT, "replay_unbounded", "check() == 1 and check('--leaks', 'off', '--max-growth', '16MiB') == 5 and "
    "check('--leaks', 'off', '--max-growth', '2GiB') == 0 and check('--leaks', 'grow', '--min-bytes', '2GiB') == 0",
    "growth", suffix=".gates")
for function, gates, ended in (
        ("without_pool_kept", "--leaks grow", 1), ("frames_fetched", "--leaks grow", 0),
        ("frames_fetched", "--leaks off --max-peak 1MiB", 5), ("fails", "--leaks grow", 7),
        ("never_freed", "--leaks exit", 1), ("nothing", "--leaks grow", 3),
        ("nothing", "--leaks grow --allow-unmeasured", 0)):
    add(CP, function, "", ended=ended, gates=gates, suffix="." + gates.replace(" ", ""))
add(HF, "oom_skipped", "", ended=4, gates="--leaks grow", suffix=".run", **DEVICE)

# ---- trainings, services, computations and CUDA C++: the second set ----

TT, TS, CS, JF, CU = "torch_training", "torch_serving", "cupy_science", "jax_flax", "service"
for function, place, least in (
        ("ema_backups_stay", "apply", 100), ("log_probabilities_stay", "select_action|reinforce", 100),
        ("second_order_cycles", "second_order_trial|backward passes", 200), ("states_of_old_points", "densify|splatting|backward passes", 400),
        ("hooks_pile_up", "train_with_probes|forward", 400), ("crops_never_hit", "__getitem__", 100),
        ("folds_registered", "cross_validate|backward passes", 200), ("errors_logged", "checked_step|train_with_log", 400),
        ("finalizers_wait", "reserve_region", 200)):
    leak(TT, function, place, least, also={"fragmentation", "unstable"})
healthy(TT, "ema_swapped q_learning log_probabilities_cleared second_order unfreezing accumulated "
        "autocast_around_everything data_parallel sharded graphed_training crops_cached pinned_loader prefetched folds "
        "checkpoints_in_the_loop hooks_removed finalizers_run last_errors_logged splats_until_enough")
healthy(TT, "mixture_of_experts", also="unstable")
# sizes that change leave holes, of which a report may speak; nothing grows
for function in "curriculum progressive_resizing sorted_by_length".split():
    add(TT, function, "calm() and not found('coverage')", also={"unstable", "fragmentation"})
add(TT, "progressive_resizing", "calm()", also={"unstable", "fragmentation"}, suffix=".async", **ASYNC)
leak(TT, "states_of_old_points", "densify|splatting|backward passes", 400, also={"fragmentation", "unstable"}, suffix=".expandable", **EXPANDABLE)
oom(TT, "oom_mean_of_weights", "exhausted", "asked_by('oom_mean_of_weights') and not growth()", **DEVICE)
oom(TT, "oom_validation_at_once", "exhausted", "asked_by('whole_validation') and not growth()", **DEVICE)
oom(TT, "oom_vocabulary", "exhausted", "asked_by('token_loss') and not growth()", **DEVICE)
oom(TT, "oom_halved", "limit", "calm() and len(found('oom')) <= 3", ended=0)  # one for each layer that was refused
oom(TT, "oom_small_segments", "fragmented", "not growth()", about={"fragmentation"}, **DEVICE)

for function, place, least in (
        ("pages_of_cancelled_requests", "grow|take", 100), ("context_untrimmed", "extend|transcribe", 80),
        ("weights_before_merging_stay", "merge", 400), ("versions_held_by_workers", "deploy|forward|prompt", 200),
        ("retries_never_run", "retries", 100), ("answers_audited", "rank", 300), ("streams_left_open", "stream_tokens|prompt", 50),
        ("questions_remembered", "enlarge", 200), ("latents_of_all_pictures", "sample", 150)):
    leak(TS, function, place, least, also={"fragmentation", "unstable"})
healthy(TS, "pages_returned prefixes_by_bytes speculative context_trimmed adapters_in_turn versions_replaced "
        "serve_with_threads retries_limited figures_audited streams_closed sessions_expire latents_of_one_picture "
        "worker_process", also="unstable")
healthy(TS, "shapes_as_graphs")
oom(TS, "oom_long_text", "exhausted", "asked_by('scores_of') and not growth()", **DEVICE)
oom(TS, "oom_sessions_survived", "exhausted", "blames('complete|extend|oom_sessions_survived') and growth()",
    about={"growth", "fragmentation"}, ended=0, **DEVICE)
add(TS, "oom_beside_a_graph", "set(verdicts()) != {'fragmented'} and told('graph|private', ids='oom') and not growth()",
    also={"oom: exhausted", "oom: limit", "fragmentation", "pressure"}, ended=1, **DEVICE)

healthy(CS, "spectra_of_records power_iterations least_squares streams_in_turn images_averaged plans_for_four_lengths "
        "stages_in_turn")
add(CS, "managed_pool", "calm()")
add(CS, "streams_kept", "any(told('stream', 'on_own_stream', ids='cost.grow'))", also="growth")
leak(CS, "images_stacked", "filtered|stack_images", 200)
leak(CS, "plans_for_each_length", "plan_for|transforms", 5)
leak(CS, "stages_kept", "pinned_stage", 100)
add(CS, "formulas", "any(told('module', 'compile_formula|formulas', ids='cost.grow')) and calm()")
# the pool's own limit refuses: CUDA is not asked, so the file does not say that memory ran out
add(CS, "limited_pool", "not doc['ooms'] and calm()", ended=1)
oom(CS, "oom_volume", "exhausted", "asked_by('spectrum') and not growth()", **DEVICE)
oom(CS, "oom_more_points", "exhausted", "asked_by('distances') and not growth()", **DEVICE)
oom(CS, "oom_history", "exhausted", "blames('advance') and growth()", about={"growth"}, **DEVICE)

healthy(JF, "with_mean_of_weights last_checkpoints prefetched trajectories_dropped shards_of_a_week",
        also="thrash", suffix=".platform", **PLATFORM)
healthy(JF, "with_mean_of_weights last_checkpoints prefetched", suffix=".growing", **GROWING)
# a number of its own takes 2 MiB of XLA's allocator without a pool
leak(JF, "losses_logged", "losses_logged", 100, suffix=".platform", **PLATFORM)
leak(JF, "checkpoints_on_device", "save", 100, suffix=".platform", **PLATFORM)
leak(JF, "trajectories_kept", "collect", 200, suffix=".platform", **PLATFORM)
leak(JF, "shards_by_day", "on_device", 80, suffix=".platform", **PLATFORM)
for function, place in (("checkpoints_on_device", "save"), ("shards_by_day", "on_device")):
    add(JF, function, "any(told('not visible', ids='pool.opaque')) and calm()", suffix=".growing", **GROWING)
oom(JF, "oom_all_pairs", "exhausted", "advised('5.98 GiB') and not growth()", suffix=".platform", **PLATFORM, **DEVICE)
oom(JF, "oom_shards", "exhausted", "blames('on_device') and growth()", about={"growth"}, suffix=".platform", **PLATFORM, **DEVICE)

for function, place, least in (
        ("plans_of_records", "make_plan|analyse_record", 20), ("handles_of_products", "multiply", 50),
        ("singular_matrices", "factorize", 40), ("samples_remembered", "remember_samples", 150),
        ("events_appended", "events_appended", 60), ("outputs_lost", "pipeline|outputs_lost", 80),
        ("files_registered", "copy_file", 80), ("steps_that_throw", "Step::Step", 100)):
    leak(CU, function, place, least)
# nothing comes and goes in these: what is left at the end is named at its place, or is said to grow
for function, place, least in (
        ("arena_of_days", "extend", 400), ("frames_as_textures", "upload_frame", 300), ("heads_dropped", "append", 120),
        ("connections_forgotten", "serve_connection", 300)):
    add(CU, function, f"sum(f['bytes'] for f in told({place!r}, ids='leak.*')) >= {least} * MiB and check() == 1", also="growth")
healthy(CU, "plans_destroyed plans_cached handles_destroyed solver samples pipelined graph_updated lists_freed files_copied "
        "arena_of_requests connections_closed never_freed")
add(CU, "graphs_of_requests", "any(told('graph', 'graphs_of_requests|record_request', ids='*cost*')) and calm()")
add(CU, "oom_overflow", "len(found('oom')) == 1 and not growth() and asked_by('oom_overflow')", also="oom: exhausted", ended=1)
# by factors, and each grid freed before the next: either word may be said of it
add(CU, "oom_refinement", "all_are('exhausted') and asked_by('oom_refinement')", "oom: exhausted", "growth", ended=1, **DEVICE)

add(CU, "never_freed", "check() == 1 and check('--leaks', 'exit') == 1 and check('--leaks', 'grow') == 0 and "
    "check('--leaks', 'off', '--max-peak', '64MiB') == 5 and check('--leaks', 'off', '--max-peak', '1GiB') == 0", suffix=".gates")
add(TS, "prefixes_by_bytes", "check() == 0 and check('--max-peak', '4GiB', '--max-growth', '256MiB', '--max-retries', '0') == 0 and "
    "check('--max-peak', '64MiB') == 5", suffix=".gates", also="unstable")
add(TS, "answers_audited", "check() == 1 and check('--leaks', 'grow', '--min-bytes', '64MiB') == 1 and "
    "check('--leaks', 'grow', '--min-bytes', '4GiB') == 0 and check('--leaks', 'off', '--max-growth', '64MiB') == 5",
    "growth", suffix=".gates")
for program, function, gates, ended in (
        (CU, "steps_that_throw", "--leaks grow", 1), (CU, "solver", "--leaks exit", 0),
        (TT, "finalizers_run", "--leaks grow --max-peak 2GiB", 0), (TT, "oom_halved", "--leaks grow", 4),
        (TT, "oom_halved", "--leaks grow --allow-oom", 0), (TS, "retries_never_run", "--leaks grow", 1)):
    add(program, function, "", ended=ended, gates=gates, suffix="." + gates.replace(" ", ""))


class Suite:
    def __init__(self, bundle, out):
        self.bundle, self.out = bundle, out
        self.tool = str(bundle / "gpumem-report")
        self.begun = time.monotonic()

    def run(self, case, file):
        """The program under the shim, or by `run`; how it ended."""
        script = HERE / "workloads" / f"{case.program}.py"
        command = [*([sys.executable, str(script)] if script.exists() else [str(self.bundle / case.program)]), case.function]
        environment = {**os.environ, "GPUMEMTRACE_QUIET": "1", "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "2",
                       "HF_HUB_OFFLINE": "1", **case.environment}
        if case.gates:
            command = [self.tool, "run", "-q", "-o", str(file), "--check", case.gates, "--", *command]
        else:
            environment.update(LD_PRELOAD=str(self.bundle / "libgpumemtrace.so"), GPUMEMTRACE_OUT=str(file))
        with open(self.out / f"{case.name}.said", "w") as said:
            return subprocess.run(command, env=environment, stdout=said, stderr=said, timeout=150).returncode

    def judge(self, case):
        """(what is wrong, what was said)"""
        if time.monotonic() - self.begun > float(os.environ.get("LIMIT", "900")):
            return None, "not run"
        file = self.out / f"{case.name}.gmt"
        file.unlink(missing_ok=True)
        ended = self.run(case, file)
        last = ((self.out / f"{case.name}.said").read_text(errors="replace").splitlines() or [""])[-1]
        wrong = [] if ended == case.ended else [f"ended with {ended}, not {case.ended}: {last[-200:]}"]
        if case.gates:
            return wrong, ""
        run = judged.Judged(self.tool, str(file), ended, None)
        (self.out / f"{case.name}.txt").write_text(run.text("summary", "--color", "never"))
        (self.out / f"{case.name}.json").write_text(json.dumps(run.document))
        if not eval(case.label, {"__builtins__": {}, **run.vocabulary()}):  # the table's own words
            wrong.append(case.label)
        if not case.gates and (false := run.claims() - case.about - case.also):
            wrong.append(f"says {', '.join(sorted(false))}")
        return wrong, "\n".join(f"    {f['severity']} {f['id']}: {f['title']}" for f in run.document["findings"])

    def result(self, case):
        begun = time.monotonic()
        try:
            wrong, said = self.judge(case)
        except Exception as error:  # noqa: BLE001, every failure is a result
            wrong, said = [f"{type(error).__name__}: {error}"], ""
        return case, wrong, said, time.monotonic() - begun

    def keep(self, name, wrong):
        """Leaves a recording only if it is of a wrong verdict and small."""
        file = self.out / f"{name}.gmt"
        if wrong and file.exists() and file.stat().st_size < 64 << 20:
            packed = lzma.compress(file.read_bytes(), preset=1)
            if len(packed) < SMALL:
                file.with_suffix(".gmt.xz").write_bytes(packed)
        for left in self.out.glob(f"{name}.gmt*"):
            if left.suffix != ".xz":
                shutil.rmtree(left) if left.is_dir() else left.unlink()


def main(bundle, out, *patterns):
    suite = Suite(pathlib.Path(bundle).resolve(), pathlib.Path(out).resolve())
    suite.out.mkdir(parents=True, exist_ok=True)
    chosen = [c for c in ALL if not patterns or any(fnmatch.fnmatch(c.name, p) for p in patterns)]
    right = missing = 0
    with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("JOBS", "8"))) as pool:
        for case, wrong, said, seconds in pool.map(suite.result, chosen):
            suite.keep(case.name, wrong)
            right += wrong == []
            missing += wrong is None
            state = "skip" if wrong is None else "FAIL" if wrong else "ok"
            print(f"{state} {case.name} ({seconds:.0f} s){': ' + '; '.join(wrong) if wrong else ''}", said, sep="\n", flush=True)
    print(f"workloads: {right} of {len(chosen) - missing} right, {missing} not run")
    return right != len(chosen)


assert len({case.name for case in ALL}) == len(ALL), "names are unique"
if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

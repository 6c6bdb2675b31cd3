"""The table of the labelled corpus: what runs, what is right to say of it, and why.

A label follows from what the program does and never from what the product says of it; README.md has the conventions
and the words. `about` is what is to be told, for precision and recall.
"""
import typing

WAYS = ("shim", "snapshot", "file")


class Case(typing.NamedTuple):
    name: str
    kind: str  # positive, negative, oom, gate
    program: str  # verdict_PROGRAM of the build, or a file of programs/
    arguments: str
    label: str
    why: str
    about: frozenset = frozenset()  # what is to be said
    also: frozenset = frozenset()  # what may be said too
    environment: str = ""
    ended: int = 0  # how the program ends: a status, or minus a signal
    repetitions: int = 1
    way: str = "shim"  # snapshot: PyTorch's own, written by the program; file: PROGRAM is a file below tests/


ALL = []


def add(kind, name, program, arguments, label, why, about=(), also=(), **others):
    about, also = (frozenset({some} if isinstance(some, str) else some) for some in (about, also))
    ALL.append(Case(name, kind, program, arguments, label, why, about, also, **others))


def leak(name, program, arguments, label, why, about="growth", **others):
    add("positive", name, program, arguments, label, why, about, **others)


def healthy(name, program, arguments, why, label="quiet()", **others):
    add("negative", name, program, arguments, label, why, **others)


def oom(name, program, arguments, cause, why, label="", **others):
    label = f"all_are({cause!r})" + (f" and {label}" if label else "")
    add("oom", name, program, arguments, label, why, {f"oom: {cause}", *others.pop("beside", ())}, **others)


def gate(name, program, arguments, label, why, about=(), **others):
    add("gate", name, program, arguments, label, why, about, **others)


# ---- growth in plain CUDA programs, and every way to end ----

LIST = "grows('append_result', least=150 * MiB)"
for end, ended, why in (
        ("return", 0, "one MiB in each of 240 steps is kept and left to the process's end"),
        ("free", 0, "the list is freed at the end of main: the work is over by then"),
        ("atexit", 0, "the list is freed by a handler of atexit"),
        ("destructor", 0, "the list is freed by a library destructor, which CUDA refuses by then"),
        ("reset", 0, "cudaDeviceReset at the end of main lets everything go"),
        ("exit", 0, "exit() from within the program"),
        ("_exit", 0, "_exit(): no handler runs"),
        ("quick", 0, "quick_exit(): no destructor runs"),
        ("abort", -6, "the program aborts after its last step"),
        ("kill", -9, "the program is killed after its last step"),
        ("term", -15, "the default action of SIGTERM"),
        ("handler", 0, "a handler of SIGTERM frees the list and ends the program")):
    leak(f"list-{end}", "leaks", f"list {end}", LIST, why, ended=ended, repetitions=3 if end == "free" else 1)

leak("overwritten-pointer", "leaks", "overwritten", "grows('replace_field', least=70 * MiB)",
     "the pointer to each step's buffer is overwritten by the next one")
leak("error-path", "leaks", "error-path", "grows('solve_system', least=200 * MiB)",
     "one step in nine returns early and forgets 3 MiB")
leak("from-a-third-on", "leaks", "from-a-third-on free", "grows('append_result', least=80 * MiB)",
     "two thirds of the run leak; it began after the warm-up")
leak("checkpoints", "leaks", "checkpoints free", "grows('write_checkpoint', least=110 * MiB)",
     "every twentieth step keeps 8 MiB, 24 times over the run")
leak("sessions", "leaks", "sessions free", "grows('open_session', least=70 * MiB)",
     "the place frees as often as it forgets; what it holds rises in every step", repetitions=3)
leak("in-noise", "leaks", "in-noise free", "grows('forget_descriptor', least=18 * MiB)",
     "64 KiB every fifth step below random working memory of up to 400 MiB", about={"growth", "unstable"},
     repetitions=3)
leak("evaluation", "leaks", "evaluation free", "grows('evaluate_logits', least=50 * MiB)",
     "memory rises only in the evaluations between epochs, in every one of them", repetitions=3)
leak("evaluation-marked", "leaks", "evaluation-marked free", "grows('evaluate_logits', least=50 * MiB)",
     "the same with marks around the phases")
for name, why in (("mark-at-end", "results are kept in every step; the only mark is at the end"),
                  ("phase-marks", "results are kept in every step of two of three phases")):
    leak(name, "leaks", name + " free", "grows('keep_results', least=150 * MiB)", why)
leak("last-validation", "leaks", "last-validation free", "grows('remember_loss', least=550 * MiB)",
     "each step of training keeps a loss, then comes a validation of a tenth of the work")
leak("half-marked", "leaks", "half-marked free", "grows('keep_half', least=150 * MiB)", "every second result is kept; two marks")
leak("at-marks", "leaks", "at-marks free", "grows('archive_epoch', least=85 * MiB)",
     "6 MiB more at the end of each of 24 epochs")
leak("one-buffer-longer", "leaks", "longer free", "grows('enlarge', least=120 * MiB)",
     "one buffer is replaced by a longer one in every step", repetitions=3)
leak("two-places-longer", "leaks", "alternating free", "grows('enlarge_odd|enlarge_even', least=100 * MiB)",
     "two places take turns in replacing the buffer by a longer one", repetitions=3)
leak("two-places-longer-marked", "leaks", "alternating-marked free", "grows('enlarge_odd|enlarge_even', least=100 * MiB)",
     "the same with two marks, which name phases")
for name, place, least, why in (
        ("renewed-each-step", "renew", 50, "a buffer goes before its longer successor is taken, in each step"),
        ("renewed-rarely", "renew", 40, "the same twelve times in the run"),
        ("renewed-in-turn", "renew_even|renew_odd", 100, "two places do it in turn"),
        ("random-errors", "forget_request", 24, "some two dozen errors at random instants forget their request"),
        ("random-errors-again", "forget_request", 24, "the same with other instants"),
        ("random-errors-fewer", "forget_request", 12, "a dozen errors at random instants"),
        ("then-measured", "forget_request", 350, "clean requests follow for the last tenth of the run")):
    leak(name, "leaks", f"{name} free", f"grows({place!r}, least={least} * MiB)", why)
for end, ended in (("return", 0), ("free", 0), ("kill", -9)):
    leak(f"without-scratch-{end}", "leaks", f"without-scratch {end}", "grows('append_result', least=150 * MiB)",
         "each step keeps its result, kernels run, and nothing else is allocated", ended=ended,
         repetitions=5 if end == "free" else 1)
leak("after-a-trial", "leaks", "after-a-trial free", "grows('append_result', least=100 * MiB)",
     "a first step, ways to compute are tried for longer than all later steps take, and each of these keeps its result")
leak("doubling", "leaks", "doubling free", "grows('append_record', least=512 * MiB)",
     "the buffer doubles nine times, the last time shortly before the end", repetitions=3)
leak("thirty-handlers", "leaks", "handlers free", "grows('dispatch', least=10 * MiB) and len(growth()) == 1",
     "30 places below one caller forget 0.5 MiB each: the caller is the answer, once")
leak("unrolled", "leaks", "unrolled free", "grows('unrolled_batch', least=150 * MiB) and len(growth()) == 1",
     "eight copies of one line are one place")
leak("recursion", "leaks", "recursion free", "grows('walk_tree', least=70 * MiB)",
     "one line at 24 depths: no depth alone carries the rise")
leak("second-device", "leaks", "second-device free",
     "grows('mirror_to_second', least=150 * MiB, device=1) and not growth(device=0)",
     "work on both devices, and what is mirrored to the second one stays", environment="GPUSIM_DEVICES=2")

# ---- growth by kind of memory ----

for kind, place, least, words in (
        ("managed", "take_managed", 120, "managed"), ("pinned", "take_pinned", 120, "pinned"),
        ("async", "take_async", 120, "async"), ("pool", "take_from_pool", 120, "async"),
        ("pitched", "take_pitched", 120, "device"), ("array", "take_array", 120, "array"),
        ("mipmaps", "take_mipmaps", 120, "array"), ("registered", "take_registered", 7, "registered"),
        ("mapping", "take_mapping", 240, "vmm"), ("handle", "take_mapping", 240, "vmm"),
        ("graph", "take_graph_memory", 120, "graph"), ("arena", "take_of_arena", 120, ".")):
    leak(f"kind-{kind}", "kinds", f"{kind}-keep",
         f"grows({place!r}, least={least} * MiB) and told({words!r}, {place!r})",
         f"one piece of {kind} memory is forgotten in each of 200 steps")
    healthy(f"kind-{kind}-freed", "kinds", f"{kind}-free", f"{kind} memory is given back in each of 200 steps")
leak("per-stream", "kinds", "stream-keep",
     "grows('take_for_stream', least=120 * MiB) and told('stream', 'take_for_stream')",
     "each of 200 requests has a stream of its own and leaves a workspace behind")
healthy("per-stream-freed", "kinds", "stream-free", "the same with the free")
leak("per-thread", "threads", "per-thread",
     "grows('serve_request', least=240 * MiB) and told('thread', 'serve_request')",
     "each of 200 threads ends and leaves its workspace")
healthy("per-thread-freed", "threads", "per-thread-freed", "each thread frees its workspace")
leak("one-thread-of-four", "threads", "one-of-four free", "grows('keep_result', least=120 * MiB)",
     "of four equal workers one keeps its results")
leak("two-threads-of-eight", "threads", "two-of-eight free", "grows('keep_result', least=240 * MiB)",
     "of eight equal workers two keep their results", repetitions=3)
leak("first-thread-of-four", "threads", "first-of-four-in-turn free", "grows('keep_result', least=120 * MiB)",
     "four threads do the same work one after the other, and the first one keeps its results")
healthy("one-loader", "threads", "one-loader", "a thread converts a model and ends; then four workers serve",
        repetitions=3)
healthy("four-loaders", "threads", "four-loaders", "each of four threads converts its part; then four workers serve",
        repetitions=3)
healthy("four-workers", "threads", "four-workers", "four workers hold a workspace each for the whole run")
healthy("pipeline", "threads", "pipeline", "one thread allocates and another frees, eight batches deep")
leak("plug-in-reloaded", "reload", "{programs}/verdict_plugin_forgets.so",
     "grows('make_table', least=45 * MiB) and len(growth()) == 1",
     "a plug-in at 150 addresses is one place, and it forgets 512 KiB per job")
healthy("plug-in-reloaded-freed", "reload", "{programs}/verdict_plugin_returns.so",
        "a plug-in at 150 addresses frees what it takes")

leak("list-segv", "leaks", "list segv", LIST, "the program crashes after its last step", ended=-11)

# ---- stores: caches, pools, sessions, queues, arenas ----

for name, place, least, why in (
        ("cache-of-users", "insert_entry", 60, "each new user's entry stays in the cache"),
        ("evicts-too-little", "insert_entry", 120, "two entries come for each that is evicted"),
        ("pool-of-forgetful-users", "add_chunk", 120, "one user in three never gives its block back to the pool"),
        ("sessions-without-timer", "begin_session", 40, "of one session in ten the timer was never set"),
        ("expiry-breaks", "begin_session", 200, "from the middle of the run on no session expires"),
        ("tiny-blocks", "forget_event", 1.4, "256 bytes in each of 8,000 steps"),
        ("slow-in-noise", "forget_event", 2.5, "4 KiB in each step below random working memory of up to 512 MiB"),
        ("rare-errors", "forget_event", 40, "one request in a hundred forgets 4 MiB"),
        ("bursts", "forget_event", 80, "ten blocks at the end of each of twelve epochs"),
        ("larger-each-time", "forget_event", 200, "what is forgotten is a little larger each time"),
        ("queue-outruns-its-consumer", "enqueue", 150, "four batches come for each three that are served"),
        ("endless-conversation", "lengthen_cache", 200, "the cache of a conversation that never ends"),
        ("arena-without-limit", "extend_arena", 400, "2 MiB more are mapped in each step and none is unmapped"),
        ("streams-forget", "stage_on_stream", 120, "one step in five forgets stream-ordered memory")):
    leak(f"store-{name}", "stores", f"{name} free", f"grows({place!r}, least={least} * MiB)", why,
         about={"growth", "unstable"} if name == "slow-in-noise" else "growth", repetitions=2)
for name, why in (
        ("least-recently-used", "32 entries, the least recently used one goes"),
        ("plans-by-shape", "plans for 24 shapes, all of which have come soon"),
        ("pool-with-high-water-mark", "the pool has its three chunks soon"),
        ("sessions-that-expire", "sessions last up to 60 of 600 steps"),
        ("bounded-queue", "at most 16 batches wait, sometimes none"),
        ("long-window", "results of the last 400 of 450 steps are kept"),
        ("sizes-from-the-largest", "buffers for 48 sizes are made from the largest down, then a short service"),
        ("preload", "a data set is converted and preloaded, then epochs over it"),
        ("stages", "a model gets five more stages in the first half of its training"),
        ("hot-swap", "a new version is loaded ten times before the old one goes"),
        ("last-three", "the last three checkpoints are kept"),
        ("warm-up", "large scratch memory in the first steps only"),
        ("conversations", "the cache of each of twenty conversations grows and goes"),
        ("arena-of-working-set", "the arena is extended until it has its working set"),
        ("streams-return", "stream-ordered memory of four streams goes back in each step")):
    healthy(f"store-{name}", "stores", name, why, repetitions=2)
for name, place, why in (
        ("deque-without-pop", "Recorder::record", "nobody pops from the deque of recent results"),
        ("closures", "Bus::subscribe", "stored closures hold their buffers"),
        ("throwing-constructor", "Matrix::Matrix|Matrix", "a raw pointer is lost when its constructor throws"),
        ("base-without-destructor", "Dense::Dense|Dense", "a derived class's memory is not released with its base"),
        ("kept-futures", "start_task", "futures that are kept hold their results"),
        ("copied-when-longer", "keep_sample", "a vector of values copies all of them whenever it gets longer"),
        ("holds-itself", "Tracked::pin", "each object holds a shared pointer to itself")):
    leak(f"cpp-{name}", "containers", name, f"grows({place!r}, least=100 * MiB)", why)
for name, why in (
        ("bounded-cache", "list and map of 24 entries, the least recently used one goes"),
        ("weak-cache", "a cache of weak pointers and eight objects in use"),
        ("reset-each-step", "a unique pointer is reset in each step"),
        ("priorities", "at most 12 requests wait in a priority queue"),
        ("copied-in-bounds", "the oldest of 24 values goes, and the others are copied one place down"),
        ("two-tiers", "values are copied from a fast store to a slow one; both are full soon"),
        ("futures-taken", "each future's result is taken and dropped")):
    healthy(f"cpp-{name}", "containers", name, why)

# ---- what rises beside the allocations ----

for name, word, place, row, least, setting, why in (
        ("streams", "stream", "open_channel", "streams", 79, "GPUSIM_STREAM=512KiB", "each of 160 steps makes a stream of 0.5 MiB and drops it"),
        ("modules", "module", "compile_formula", "modules and limits", 150, "", "80 modules of 2 MiB are loaded and never unloaded"),
        ("modules-of-compiler", "module", "formula_load", "modules and limits", 150, "", "a library compiles 80 modules of 2 MiB and never unloads them"),
        ("graphs", "graph", "record_shape", "CUDA graphs", 140, "GPUSIM_GRAPH=2307", "160 executables of 400 nodes are never destroyed")):
    leak(f"beside-{name}", "costs", f"{name} free",
         f"told({word!r}, {place!r}, ids='cost.grow') and calm() and "
         f"sum(r['bytes'] for r in doc['ledger'][0]['rows'] if r['what'] == {row!r}) >= {least} * MiB",
         why, about=(), environment=setting)
leak("beside-contexts", "costs", "contexts free", "told('context', 'open_worker', ids='context.several') and calm()",
     "three workers make a context each beside the primary one", about=())
healthy("beside-streams-destroyed", "costs", "streams-destroyed free",
        "each request has three streams of its own and destroys them", environment="GPUSIM_STREAM=4MiB")
leak("beside-modules-until-the-end", "costs", "modules-until-the-end free",
     "told('module', 'compile_formula', ids='cost.grow') and calm()",
     "each step's module is kept to the end, where most of them are unloaded", about=())
healthy("beside-stream-pool", "costs", "stream-pool free", "sixteen streams are made at the start and used to the end",
        environment="GPUSIM_STREAM=512KiB")
healthy("beside-modules-unloaded", "costs", "modules-unloaded free", "each step's module is unloaded after it")
healthy("beside-modules-of-library", "costs", "modules-of-library free",
        "a library of precompiled kernels loads one of its modules for each new shape")
healthy("beside-graphs-at-start", "costs", "graphs-at-start free", "a server records 40 shapes and then serves them",
        environment="GPUSIM_GRAPH=2307")
healthy("beside-graphs-destroyed", "costs", "graphs-destroyed free", "each step's executable is destroyed after it",
        environment="GPUSIM_GRAPH=2307")

# ---- growth in C++ programs ----

for name, place, ended, why in (
        ("vector-of-main", "fill_results", 0, "a vector of main's is destroyed at the end of main"),
        ("vector-of-main exit", "fill_results", 0, "exit() skips the destructor of main's vector"),
        ("vector-of-main quick", "fill_results", 0, "quick_exit() skips all destructors"),
        ("static-map", "remember_result", 0, "a static cache without a limit is destroyed after main"),
        ("member-history", "handle_job", 0, "the server's history of jobs goes with the server"),
        ("shared-cycle", "connect_nodes", 0, "two nodes hold each other and nothing else holds them"),
        ("caught-by-main", "fill_results", 1, "unwinding frees the results after the last step"),
        ("uncaught", "fill_results", -6, "std::terminate aborts without unwinding"),
        ("function-static", "log_sample", 0, "a function's static vector has no limit")):
    leak("cpp-" + name.replace(" ", "-"), "buffers", name, f"grows({place!r}, least=70 * MiB)", why, ended=ended)
leak("cpp-growing-array", "buffers", "growing-array", "grows('DeviceArray::reserve', least=512 * MiB)",
     "an array that is appended to for ever doubles ten times")
leak("cpp-templates", "buffers", "templates", "grows('run_instances<.*|keep_table<.*', least=40 * MiB)",
     "24 instances of one template keep a table per call")
healthy("cpp-fixed-vector", "buffers", "fixed-vector", "24 buffers for the whole run, clean steps")
healthy("cpp-array-of-known-size", "buffers", "array-of-known-size", "an array reaches its size in the first tenth")
healthy("cpp-shuffled-lives", "buffers", "shuffled-lives", "a step's objects go in another order than they came")
healthy("cpp-thrown", "buffers", "healthy-and-thrown", "an exception ends a healthy run in the middle", ended=1)

# ---- healthy plain CUDA programs ----

for name, why in (
        ("fixed-set", "24 buffers are made first and used to the end"),
        ("one-step", "a model is loaded and one step is made"),
        ("load-only", "400 tensors are loaded at one line and the program ends"),
        ("slow-load", "loading with conversion kernels takes half of the run"),
        ("results-at-the-end", "an allocation loop right before the end is one last piece of work"),
        ("shapes", "buffers for 48 shapes: all have come within a third of the run"),
        ("experts", "experts are loaded when first needed; the rare ones come later, and fewer and fewer"),
        ("bounded-cache", "the cache is full after a fifth of the run and evicts from then on"),
        ("ring", "16 slots, replaced in turn"),
        ("double-buffer", "the next batch is loaded while this one is worked on"),
        ("sawtooth", "results gather for 40 steps and go together, 12 times"),
        ("queue", "a backlog builds up, drains, and the last half is quiet"),
        ("late-queue", "a backlog builds up for two thirds of the run and is served completely before the end"),
        ("plateau", "the arena reaches the working set in a tenth of the run"),
        ("two-phases", "two levels, each constant"),
        ("algorithm-search", "one search with large workspaces in the third step"),
        ("first-step", "the optimizer's state comes with the first step"),
        ("epochs", "training and evaluation take turns, each with its own constant peak"),
        ("epochs-marked", "the same with marks"),
        ("loaded-mark", "weights come through staging buffers, then a mark, then requests"),
        ("short-use-after-mark", "the same with four requests"),
        ("end-mark", "one mark, at the end"),
        ("shrinking", "weights are pruned away"),
        ("last-checkpoint", "one large buffer right before the end"),
        ("filled-and-over", "200 tensors are filled by a kernel each, and that is all"),
        ("made-by-kernels", "100 tensors are made by three kernels each; the steps allocate nothing"),
        ("launches-only", "warm-up, then launches without an allocation"),
        ("models-in-turn", "four models one after the other, each freed before the next"),
        ("ensemble", "twenty models are loaded one after the other, then all serve"),
        ("converted-and-tried", "weights are converted one by one, and a few steps follow"),
        ("index-and-questions", "an index is built with scratch memory for each item, and asked a few questions"),
        ("last-evaluation", "the predictions of one evaluation after the training are gathered"),
        ("made-and-thinned", "of a set that is made at once most goes together"),
        ("larger-batches", "six stages with larger batches; the last is more than half of the run"),
        ("late-cache", "a cache has all of its entries after 85 of 100 steps"),
        ("late-ring", "a ring is full after 70 of 100 steps"),
        ("largest-so-far", "a workspace of the largest request so far: soon none is larger")):
    healthy(name, "healthy", name, why, repetitions=3 if name in ("shapes", "experts", "plateau") else 1)
healthy("both-devices", "healthy", "both-devices", "two devices do the same", environment="GPUSIM_DEVICES=2")
for end, ended in (("free", 0), ("kill", -9), ("abort", -6), ("reset", 0), ("_exit", 0)):
    healthy(f"fixed-set-{end}", "healthy", f"fixed-set {end}", f"a fixed set; the program ends by {end}", ended=ended)
healthy("load-only-free", "healthy", "load-only free", "400 tensors are loaded and freed at once")
healthy("load-only-kill", "healthy", "load-only kill", "killed right after loading", ended=-9)
healthy("results-freed", "healthy", "results-at-the-end free", "results of the last loop are freed at the end")

# ---- refused memory in plain CUDA programs ----

oom("oom-weights", "refused", "weights", "exhausted", "6.5 of 7.5 GiB are weights; 2 GiB more cannot fit",
    "blames('load_model')")
oom("oom-weights-one-by-one", "refused", "weights-one-by-one", "exhausted",
    "loading until the device is full is set-up and no leak")
oom("oom-activations", "refused", "activations", "exhausted", "4 GiB of weights, 4 GiB of activations, 7.5 GiB")
oom("oom-absurd", "refused", "absurd", "exhausted", "64 TiB are asked for on an almost empty device",
    "quiet('utilization.low') and told('64.00 TiB', ids='oom')")
oom("oom-leak", "leaks", "until-full", "exhausted", "a list of results fills the device",
    "grows('try_append', least=5 * GiB) and blames('try_append')", beside={"growth"})
oom("oom-beside-others", "refused", "beside-others", "other-processes",
    "5 of 8 GiB belong to another process; without it the request would fit", "told('4711', ids='oom')",
    environment="GPUSIM_OTHERS=4711:5GiB")
oom("oom-others-come", "refused", "others-come", "other-processes", "5 GiB were taken by others while it ran")
oom("oom-others-do-not-matter", "refused", "others-do-not-matter", "exhausted",
    "it would not fit on an empty device either", environment="GPUSIM_OTHERS=4711:256MiB")
oom("oom-pool-maximum", "refused", "pool-maximum", "limit", "the pool was made with a maximum of 512 MiB")
oom("oom-mps-limit", "refused", "refused-early", "limit",
    "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT is 1 GiB and 1 GiB is taken",
    environment="CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=1G GPUSIM_FAIL=cuMemAlloc_v2:6+=2")
add("oom", "oom-mps-limit-elsewhere", "refused", "refused-early", "verdicts() == ['refused']",
    "the limit of CUDA_MPS_PINNED_DEVICE_MEM_LIMIT is another device's: no known limit refused it",
    environment="CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=1=1G GPUSIM_FAIL=cuMemAlloc_v2:6+=2")
add("oom", "oom-mps-limit-not-reached", "refused", "refused-early", "verdicts() == ['refused']",
    "1.5 of 6 GiB are taken when the request is refused: not by that limit",
    environment="CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=6G GPUSIM_FAIL=cuMemAlloc_v2:6+=2")
add("oom", "oom-no-reason", "refused", "refused-early",
    "len(verdicts()) == 1 and not set(verdicts()) & {'exhausted', 'fragmented', 'other-processes', 'host', "
    "'limit', 'pending-frees'} and told('free', ids='oom') and not told('memory.fraction', ids='oom')",
    "refused with most of the device free and no known limit: that is what must be said",
    environment="GPUSIM_FAIL=cuMemAlloc_v2:6+=2")
oom("oom-injected", "refused", "refused-early", "limit", "GPUMEMTRACE_FAIL refused it",
    "told('GPUMEMTRACE_FAIL', ids='oom')", environment="GPUMEMTRACE_FAIL=6+")
oom("oom-pretended-capacity", "refused", "weights-one-by-one", "exhausted", "a device of 2 GiB is pretended",
    environment="GPUMEMTRACE_CAPACITY=2GiB")
oom("oom-pinned", "refused", "pinned", "host", "2 GiB of host memory are to be pinned where 1 GiB may be",
    "told('pinned', ids='oom')", environment="GPUSIM_PINNED=1GiB")
oom("oom-pinned-leak", "refused", "pinned-leak", "host", "a loader pins 16 MiB in each step and unpins none",
    "grows('pin_batch', least=600 * MiB) and blames('pin_batch')", beside={"growth"}, environment="GPUSIM_PINNED=1GiB")
oom("oom-pending", "refused", "pending", "pending-frees", "6 GiB are freed on streams that nobody waited for",
    label="advised('freed on stream', 'take_and_drop')", also="fragmentation")
add("oom", "oom-graph-reserve", "refused", "graph-reserve",
    "len(verdicts()) == 1 and verdicts() != ['exhausted'] and told('graph', ids='oom')",
    "4 GiB lie idle in the reserve of a graph, which cudaDeviceGraphMemTrim would give back",
    also={"oom: fragmented", "oom: pending-frees", "oom: limit", "fragmentation"})
oom("oom-handles", "refused", "handles", "exhausted", "cuMemCreate of 2 GiB beside 6.5 GiB")
oom("oom-array", "refused", "array", "exhausted", "an array of 4 GiB beside 6.5 GiB")
oom("oom-second-device", "refused", "second-device", "exhausted", "the second device is full, the first one is not",
    "doc['ooms'][0]['device'] == 1 and told('.', ids='oom', device=1)", environment="GPUSIM_DEVICES=2")
oom("oom-in-thread", "refused", "in-thread", "exhausted", "a thread asks for 3 GiB beside 5.5 GiB",
    "asked_by('refused_in_thread')")
oom("oom-thinned", "refused", "thinned", "exhausted", "a set is made at once, most of it goes, and 16 GiB are refused",
    "calm()")
oom("oom-batch-search", "refused", "batch-search", "exhausted",
    "30 batches are tried at one line until one fits: one finding, that says so",
    "len(doc['ooms']) == 30 and len(found('oom')) == 1 and told('30', 'try_batch', ids='oom')")
oom("oom-falls-back", "refused", "falls-back", "exhausted", "the error is swallowed and the program ends with 0",
    "status == 0")
oom("oom-library", "refused", "library", "exhausted", "cuBLAS asks for its workspace on a full device",
    "told('cublas', 'STATUS_ALLOC_FAILED', ids='oom')")

# ---- growth in Python programs without a framework ----

for end, ended, why in (
        ("return", 0, "the interpreter clears the module's list while it ends"),
        ("exit", 0, "sys.exit(0)"), ("exit3", 3, "sys.exit(3)"), ("raise", 1, "an exception that nobody catches"),
        ("_exit", 0, "os._exit(0): nothing is cleared"), ("abort", -6, "os.abort()"),
        ("kill", -9, "killed after the last step"), ("term", -15, "the default action of SIGTERM"),
        ("interrupt", -2, "Control-C after the last step")):
    leak(f"python-list-{end}", "plain.py", f"global-list {end}",
         "grows('append_result', least=150 * MiB) and not told('loss', ids='leak.*')",
         f"one MiB in each of 240 steps is kept in a module's list; {why}", ended=ended,
         repetitions=3 if end == "return" else 1)
for name, place, least, why in (
        ("unbounded-lru-cache", "text_features", 150, "functools.lru_cache(maxsize=None)"),
        ("session-table", "open_session", 150, "sessions are opened and never closed"),
        ("closures", "register_callback", 150, "callbacks hold buffers by their closures"),
        ("tracebacks", "parse_record", 90, "errors that are kept hold the frames of their tracebacks"),
        ("generators", "stream_rows", 150, "generators are started, suspended and kept"),
        ("class-registry", "Metric.__init__|Metric", 150, "each instance registers itself with its class"),
        ("logging-handler", "log_batch", 150, "a handler keeps its records"),
        ("per-thread", "worker_context", 280, "a context for each of 240 threads stays"),
        ("tasks", "answer_request", 150, "tasks wait for what never comes"),
        ("by-argument", "keep_in", 150, "a list of the main function's goes when that returns"),
        ("cycles-without-collector", "Node.__init__|make_cycle", 150, "cycles with the collector switched off"),
        ("one-growing-table", "lengthen", 120, "one table is replaced by a longer one in each step"),
        ("observers", "subscribe", 150, "a subject keeps its observers"),
        ("pinned-staging", "describe_transfer", 150, "pinned buffers are kept by descriptions of transfers")):
    leak(f"python-{name}", "plain.py", name, f"grows({place!r}, least={least} * MiB)", why,
         repetitions=3 if name in ("tracebacks", "cycles-without-collector") else 1)
leak("python-cycles", "plain.py", "cycles", "cycles() and told('Node|make_cycle') and told('collect')",
     "most of the peak is cyclic garbage that the collector frees now and then", "cycles", also="unstable",
     repetitions=3)
for name, why in (
        ("fixed-set", "24 buffers for the whole run"), ("bounded-lru-cache", "a cache of 32 entries"),
        ("weak-cache", "a weak dictionary"), ("bounded-history", "a deque with a limit, soon full"),
        ("errors-handled", "errors are handled and forgotten"),
        ("small-cycles", "cyclic garbage that is collected in every step"),
        ("load-and-exit", "300 tensors are loaded, and the program ends"), ("one-step", "weights and one step"),
        ("threads-that-clean-up", "threads whose context goes with them"),
        ("finished-tasks", "asynchronous workers with a bounded queue")):
    healthy(f"python-{name}", "plain.py", name, why)
healthy("python-fixed-set-raise", "plain.py", "fixed-set raise", "an exception ends a healthy run", ended=1)
healthy("python-load-and-exit-kill", "plain.py", "load-and-exit kill", "killed right after loading", ended=-9)

for name, place, least, why in (
        ("default-argument", "append_row", 200, "a default argument that each call appends to"),
        ("cached-method", "Document.embedding", 200, "functools.cache on a method keeps each object"),
        ("lagging-tee", "read_ahead", 200, "one of two iterators of a tee is never read"),
        ("slow-consumer", "accept_request", 150, "a queue without a limit, of which one item in four is served"),
        ("kept-futures", "submit", 200, "a thread pool's futures are kept, and each holds its result"),
        ("exit-stack", "open_stack", 200, "an ExitStack around the run collects a buffer per step"),
        ("parent-chain", "Node.__init__|Node", 200, "each state refers to the one before it"),
        ("finalizer-holds-it", "track", 200, "owners are kept, so that their finalizers do not run"),
        ("one-of-four-threads", "keep_result", 90, "of four equal threads one keeps its results")):
    leak(f"python-{name}", "stores.py", name, f"grows({place!r}, least={least} * MiB)", why,
         repetitions=3 if "thread" in name else 1)
for name, why in (
        ("ordered-dictionary", "a cache of 16 entries, the one used longest ago goes"),
        ("time-to-live", "entries live for 20 of 480 steps"),
        ("closed-generators", "a generator per request, which is closed"),
        ("thread-pool", "four threads map over batches, and results are consumed"),
        ("gathered-tasks", "eight tasks at a time are gathered and dropped"),
        ("cached-properties", "each of 24 objects computes a property when it is first asked"),
        ("preload-then-epochs", "300 batches are preloaded and read over and over"),
        ("backlog-that-drains", "a backlog builds up and drains three times")):
    healthy(f"python-{name}", "stores.py", name, why)

# ---- growth in PyTorch scripts ----

TORCH_LEAKS = (
    ("predictions", "collect_prediction", 200, "predictions are appended to a list on the device"),
    ("validation-graphs", "validate_epoch", 60, "validation losses are kept with the graphs of all their batches"),
    ("retained-graphs", "step_with_graph", 150, "losses are kept after backward(retain_graph=True)"),
    ("hidden-state", "recurrent_step", 380, "a hidden state is carried on without detach()"),
    ("hooks", "hooked_step", 380, "a forward hook appends every activation"),
    ("weight-copies", "average_weights", 450, "a copy of the weights stays for each of 16 epochs"),
    ("tasks", "clean_step", 700, "each of 18 tasks leaves its optimizer's state"),
    ("adapters", "add_adapter", 100, "an adapter is added for each customer and never removed"),
    ("replay-memory", "store_transition", 45, "a replay memory without a limit"),
    ("tracebacks", "process_batch", 150, "errors that are kept hold tensors by their tracebacks"),
    ("errors-in-forward", "Encoder.forward|forward", 60, "errors of a server that allocates in forward() alone are kept"),
    ("logged-tensors", "log_statistics", 18, "a logging handler keeps its records and their tensors"),
    ("small-observations", "observe_step", 3, "16 KiB in each of 320 steps"),
    ("from-the-middle-on", "collect_prediction", 130, "two thirds of the run leak"),
    ("embedding-cache", "embed_text", 100, "lru_cache(maxsize=None) and texts that do not repeat"),
    ("endless-generation", "append_token", 45, "a key/value cache is made longer and never reset"),
    ("session-caches", "open_session", 190, "sessions with key/value caches do not expire"),
    ("graph-per-length", "capture_for", 100, "a CUDA graph is captured and kept for each of 90 lengths"),
    ("cycles-without-collector", "play_episode|Episode", 95, "cycles with the collector switched off"))
for name, place, least, why in TORCH_LEAKS:
    leak(f"torch-{name}", "torch_leaks.py", name, f"grows({place!r}, least={least} * MiB)", why,
         also="fragmentation" if name in ("endless-generation", "graph-per-length") else (),
         repetitions=3 if name in ("predictions", "validation-graphs", "tasks", "weight-copies") else 1)
leak("torch-second-device", "torch_leaks.py", "second-device",
     "grows('gather_outputs', least=380 * MiB, device=1) and not growth(device=0)",
     "outputs are gathered on the second device and stay there", environment="GPUSIM_DEVICES=2")
leak("torch-pinned-prefetch", "torch_leaks.py", "pinned-prefetch",
     "grows('prefetch_batch', least=95 * MiB) and told('pinned', 'prefetch_batch') and "
     "not told('loss', ids='leak.*')",
     "a loader's queue of pinned batches has no limit")
leak("torch-cycles", "torch_leaks.py", "cycles", "cycles() and told('Episode|play_episode') and told('collect')",
     "most of the peak is cyclic garbage that the collector frees now and then", "cycles",
     also={"unstable", "fragmentation"}, repetitions=3)
for name, place in (("predictions", "collect_prediction"), ("session-caches", "open_session")):
    for end, ended in (("exit", 0), ("exit3", 3), ("raise", 1), ("_exit", 0), ("kill", -9), ("interrupt", -2)):
        leak(f"torch-{name}-{end}", "torch_leaks.py", f"{name} {end}", f"grows({place!r}, least=190 * MiB)",
             f"the leak of torch-{name}; the script ends by {end}", ended=ended)

# ---- healthy PyTorch scripts ----

TORCH_HEALTHY = (
    ("training", "Adam's state comes with the first step"), ("one-step", "a smoke test of a large model"),
    ("two-steps", "the second step has no state to make"), ("forward-only", "one forward pass, its output kept"),
    ("load-only", "weights are loaded, and the script ends"), ("load-twice", "a checkpoint beside the model, once"),
    ("epochs", "training and evaluation in turn"), ("two-phases", "the rest of the layers is trained from a third on"),
    ("low-rank", "LoRA: frozen weights, small adapters"), ("accumulation", "gradients of four batches are added up"),
    ("checkpointing", "activations are computed again"), ("distributed", "buckets of DistributedDataParallel"),
    ("adversarial", "two networks and two optimizers"), ("mixed-precision", "half-precision copies in each step"),
    ("moving-average", "one copy of the weights"), ("best-weights", "one copy, replaced now and then"),
    ("loader", "batches are pinned and prefetched, two at a time"),
    ("replay-memory", "a replay memory that is soon full"),
    ("profile-three-steps", "three steps for a profile"), ("compiled", "torch.compile at the first call"),
    ("cache-emptied-between-epochs", "empty_cache() once an epoch"), ("pruned", "layers are dropped one by one"),
    ("ensemble", "twelve models, then all of them serve"), ("serving", "inference with a model that is loaded once"),
    ("generation", "a key/value cache per request, which goes with it"),
    ("shared-graphs", "CUDA graphs for eight batch sizes in one pool"), ("bounded-cache", "lru_cache of 24 results"),
    ("saturating-cache", "tables for 40 lengths"), ("models-in-turn", "five models one after the other"),
    ("streams", "batches are copied on a side stream"), ("cycles-collected", "garbage that is collected in every step"),
    ("data-set-on-device", "the data set is copied to the device first"),
    ("transformer", "a small language model"))
for name, why in TORCH_HEALTHY:
    healthy(f"torch-healthy-{name}", "torch_healthy.py", name, why,
            repetitions=3 if name in ("two-phases", "best-weights") else 1)
healthy("torch-algorithm-search", "torch_healthy.py", "algorithm-search",
        "one search with large workspaces, which stay cached", "quiet('leak.*', 'usage.*')", also="fragmentation")
healthy("torch-early-stop", "torch_healthy.py", "early-stop", "the script stops itself by an exception", ended=1)
healthy("torch-interrupted", "torch_healthy.py", "interrupted", "Control-C in the middle of a step", ended=-2)
for end, ended in (("exit", 0), ("raise", 1), ("_exit", 0), ("kill", -9)):
    healthy(f"torch-one-step-{end}", "torch_healthy.py", f"one-step {end}", f"a smoke test that ends by {end}",
            ended=ended)
healthy("torch-two-phases-_exit", "torch_healthy.py", "two-phases _exit", "two phases; nothing is cleared")
healthy("torch-warm-caches", "torch_healthy.py", "warm-caches", "caches for all slots before the first request")
healthy("torch-paged-cache", "torch_healthy.py", "paged-cache", "all pages of the key/value cache at the start: 4 GiB "
        "of that category", "quiet() and any('key' in c['category'] and c['bytes_at_peak'] >= 4 * GiB for c in "
        "doc['categories'])")
healthy("torch-generation-category", "torch_healthy.py", "generation",
        "the growing cache of a request is a key/value cache",
        "any('key' in c['category'] and c['bytes_at_peak'] >= 20 * MiB for c in doc['categories'])")
healthy("torch-convolutions", "torch_healthy.py", "convolutions", "the search's 768 MiB are most of the peak, and "
        "workspace", "quiet('leak.*', 'usage.*') and any(c['category'] == 'workspace' and "
        "c['bytes_at_peak'] >= 300 * MiB for c in doc['categories'])", also="fragmentation")

TORCH_STORES = (
    ("metrics-on-device", "log_metric", 100, "a metric per sample is kept on the device"),
    ("vector-index", "add_documents", 60, "an index is lengthened by torch.cat in each step"),
    ("prefix-cache", "remember_prefix", 250, "keys and values of every prefix that was seen"),
    ("attention-maps", "save_attention", 120, "attention maps are saved for a figure"),
    ("search-rates", "try_rate", 150, "a search over 24 learning rates keeps each model"),
    ("summed-losses", "add_up_loss", 200, "a running loss is summed with its graph"))
TORCH_BOUNDED = (
    ("bounded-prefix-cache", "keys and values of the 16 prefixes used last"),
    ("curriculum", "sequences become longer in four stages, up to the middle"),
    ("evaluation-now-and-then", "an evaluation with a larger batch after each twentieth step"),
    ("teacher-and-student", "a fixed teacher and a student"),
    ("gradual-unfreezing", "a layer more is trained from each tenth on, up to the middle"),
    ("fixed-index", "24 entries, replaced in turn"), ("running-mean", "a mean of numbers without graphs"),
    ("requests-in-flight", "between 1 and 8 requests, each with its cache"))
for way, before in (("shim", "torch"), ("snapshot", "history")):
    for name, place, least, why in TORCH_STORES:
        leak(f"{before}-{name}", "torch_stores.py", name, f"grows({place!r}, least={least} * MiB)", why, way=way,
             also="fragmentation" if name == "vector-index" else ())
    for name, why in TORCH_BOUNDED:
        healthy(f"{before}-{name}", "torch_stores.py", name, why, way=way)

# ---- PyTorch scripts that are refused memory, or nearly ----

TORCH_OOMS = (
    ("activations", "exhausted", "asked_by('forward')", "a batch of 64,000 rows in 20 layers"),
    ("weights", "exhausted", "asked_by('make_model')", "a model of 9.4 GiB"),
    ("optimizer-state", "exhausted", "doc['ooms'][0]['phase'] == 'optimizer'", "Adam's state is twice the weights"),
    ("backward", "exhausted", "doc['ooms'][0]['phase'] == 'backward'", "the gradients of backward do not fit"),
    ("little-idle", "exhausted", "", "3 % of 7.4 GiB are idle: no fragmentation worth the name"),
    ("little-idle-expandable", "exhausted", "not advised('expandable_segments:True')",
     "the same, with expandable segments in use"),
    ("after-a-flush", "exhausted", "", "what was cached has just been given back, and was not enough"))
for name, cause, label, why in TORCH_OOMS:
    oom(f"torch-oom-{name}", "torch_refused.py", name, cause, why, label, also="pressure", ended=1)
for name, place, least, why in (
        ("leak", "collect_prediction", 5, "a list of predictions fills the device"),
        ("evaluation-with-graphs", "evaluate_all", 5, "evaluation without no_grad() fills the device"),
        ("sessions", "open_session", 5, "sessions that do not expire fill the device")):
    oom(f"torch-oom-{name}", "torch_refused.py", name, "exhausted", why,
        f"grows({place!r}, least={least} * GiB) and blames({place!r})", beside={"growth"}, also="pressure", ended=1)
oom("torch-oom-second-device", "torch_refused.py", "second-device", "exhausted", "only the second device is full",
    "doc['ooms'][0]['device'] == 1", also="pressure", ended=1, environment="GPUSIM_DEVICES=2")
oom("torch-oom-fragmented", "torch_refused.py", "fragmented", "fragmented",
    "2.8 GiB are idle in holes that converted weights left, 40 % of what is reserved",
    "told('convert_weight', ids='fragmentation.high') and advised('expandable_segments')", beside={"fragmentation"},
    also="pressure", ended=1)
oom("torch-oom-fraction", "torch_refused.py", "fraction", "limit", "a memory fraction of 25 %", "advised('fraction')",
    also="pressure", ended=1)
oom("torch-oom-beside-others", "torch_refused.py", "beside-others", "other-processes", "another process holds 5 GiB",
    "told('4711', ids='oom')", also="pressure", ended=1, environment="GPUSIM_OTHERS=4711:5GiB")
oom("torch-oom-pinned-loader", "torch_refused.py", "pinned-loader", "host", "1 GiB can be pinned", ended=1,
    environment="GPUSIM_PINNED=1GiB")
# A batch's input and the first layer's output are as large as each other: up to the 13th batch both together are more
# than the device has; from then on they would fit, were it not for the hole that the larger inputs before them left.
add("oom", "torch-oom-batch-search", "torch_refused.py", "batch-search",
    "all_are('exhausted') and len(doc['ooms']) == 30 and len(found('oom')) == 1 and told('30', 'try_batch', ids='oom')",
    "30 batches are tried until one fits", "oom: exhausted", {"pressure", "fragmentation"})
oom("torch-oom-skipped-batches", "torch_refused.py", "skipped-batches", "exhausted",
    "a batch that is too large is skipped four times", "len(found('oom')) == 1 and told('4', 'train_step', ids='oom')",
    also={"pressure", "fragmentation"})
oom("torch-oom-tried-again-inside", "torch_refused.py", "tried-again-inside", "exhausted",
    "the traceback holds the failed step's tensors while a smaller batch is tried", "told('traceback', ids='oom')",
    also="pressure", ended=1)
leak("torch-recovered", "torch_refused.py", "recovered", "told('1', ids='memory-pressure')",
     "the cache is flushed for a request that then fits", "pressure", also={"fragmentation", "unstable"})
leak("torch-thrashing", "torch_refused.py", "thrashing", "told('train_step|thrashing', ids='cache.thrash')",
     "empty_cache() in every step", "thrash")
leak("torch-fragmented-idle", "torch_refused.py", "fragmented-idle", "told('convert_weight', ids='fragmentation.high')",
     "1.9 GiB of 4.7 are idle in holes that converted weights left", "fragmentation")

# ---- peaks that differ from step to step ----

for name, why in (("random-batches", "batches of 2 to 64 sequences"),
                  ("random-batches-marked", "the same with a mark for each step"),
                  ("random-lengths", "requests of 64 to 8,192 tokens"),
                  ("sometimes-long", "one batch in nine is eight times as long")):
    leak(f"torch-{name}", "torch_refused.py", name, "found('usage.unstable')", why, "unstable", also="fragmentation",
         repetitions=5)

for name, why in (("random-sizes", "pictures of 1 to 192 MiB"), ("random-sizes-marked", "the same with marks")):
    leak(name, "leaks", name, "found('usage.unstable')", why, "unstable", repetitions=5)

# ---- histories: PyTorch's own snapshots ----

for name, place, least, why in TORCH_LEAKS:
    if name not in ("small-observations", "tracebacks", "cycles-without-collector"):
        leak(f"history-{name}", "torch_leaks.py", name, f"grows({place!r}, least={least} * MiB)", why, way="snapshot",
             also="fragmentation" if name in ("endless-generation", "graph-per-length") else ())
for name, why in TORCH_HEALTHY:
    if name in ("training", "one-step", "forward-only", "load-only", "epochs", "two-phases", "low-rank", "accumulation",
                "checkpointing", "distributed", "best-weights", "replay-memory", "compiled", "ensemble", "generation",
                "shared-graphs", "saturating-cache", "models-in-turn", "bounded-cache",
                "transformer"):
        healthy(f"history-healthy-{name}", "torch_healthy.py", name, why, way="snapshot")
for name, cause, label, why in (*TORCH_OOMS[:5], TORCH_OOMS[6]):
    oom(f"history-oom-{name}", "torch_refused.py", name, cause, why, label, way="snapshot")
oom("history-oom-leak", "torch_refused.py", "leak", "exhausted", "a list of predictions fills the device",
    "grows('collect_prediction', least=5 * GiB) and blames('collect_prediction')", beside={"growth"}, way="snapshot")
oom("history-oom-fragmented", "torch_refused.py", "fragmented", "fragmented", "2.8 GiB are idle in holes",
    "told('convert_weight', ids='fragmentation.high')", beside={"fragmentation"}, way="snapshot")
oom("history-oom-fraction", "torch_refused.py", "fraction", "limit", "a memory fraction of 25 %", way="snapshot")
add("oom", "history-oom-batch-search", "torch_refused.py", "batch-search",
    "all_are('exhausted') and len(doc['ooms']) == 30 and len(found('oom')) == 1", "30 batches are tried until one fits",
    "oom: exhausted", "fragmentation", way="snapshot")
add("oom", "history-oom-private-pool", "torch_refused.py", "private-pool",
    "len(verdicts()) == 1 and verdicts() != ['fragmented'] and told('graph|private', ids='oom')",
    "4 GiB lie idle in a graph's private pool, which the common pool cannot use", way="snapshot",
    also={"oom: exhausted", "oom: limit", "fragmentation"})
leak("history-random-batches", "torch_refused.py", "random-batches", "found('usage.unstable')",
     "batches of 2 to 64 sequences", "unstable", also="fragmentation", way="snapshot")
leak("history-cut", "torch_leaks.py", "predictions", "grows('collect_prediction', least=70 * MiB)",
     "the history's ring holds the last 5,000 entries of 11,000", way="snapshot", environment="SNAPSHOT_ENTRIES=5000")
healthy("history-cut-training", "torch_healthy.py", "training", "the history's ring holds the last 5,000 entries",
        way="snapshot", environment="SNAPSHOT_ENTRIES=5000")
for name, why in (("recorded-forward", "one forward pass in the middle of a run, its activations alive"),
                  ("recorded-step", "one step in the middle of a run"), ("recorded-first-step", "the first step")):
    healthy(f"history-{name}", "torch_healthy.py", name, why, way="snapshot", environment="SNAPSHOT_LATE=1")
    healthy(f"history-{name}-all-stacks", "torch_healthy.py", name, why, way="snapshot",
            environment="SNAPSHOT_LATE=1 SNAPSHOT_STACKS=all")
leak("history-all-stacks", "torch_leaks.py", "predictions",
     "grows('collect_prediction', least=200 * MiB) and 'collect_prediction' in growth()[0]['title']",
     "native frames without lines lie before the script's own, which is the one to be named", way="snapshot",
     environment="SNAPSHOT_STACKS=all")
healthy("history-none", "torch_leaks.py", "predictions", "without a history nothing can be said about growth",
        way="snapshot", environment="SNAPSHOT_ENTRIES=0")
healthy("history-without-times", "torch_leaks.py", "predictions", "without times nothing can be said about growth",
        way="snapshot", environment="SNAPSHOT_WITHOUT=time_us")

# ---- snapshots that PyTorch wrote: golden/torch-2.11/README.md says what their scripts do ----

REAL = "golden/torch-2.11/torch-2.11-{}.pickle"
add("oom", "real-native", REAL.format("native"), "", "verdicts() == ['exhausted', 'limit']",
    "8 GiB where 1 GiB is free; then a memory fraction", {"oom: exhausted", "oom: limit"}, "fragmentation",
    way="file")
add("oom", "real-expandable", REAL.format("expandable"), "", "verdicts() == ['exhausted', 'limit']",
    "the same with expandable segments", {"oom: exhausted", "oom: limit"}, "fragmentation", way="file")
healthy("real-streams", REAL.format("streams"), "",
        "two streams, a pending free, a graph's private pool: a few tensors", way="file")

# ---- gates on PyTorch scripts ----

gate("gate-torch-default", "torch_leaks.py", "predictions", "check() == 1", "with a framework the default is growth",
     about="growth")
gate("gate-torch-unfreed", "torch_healthy.py", "training _exit", "check() == 0", "live at the end, and not growing")
gate("gate-torch-retries", "torch_refused.py", "recovered",
     "check('--leaks', 'off', '--max-retries', '0') == 5 and check('--leaks', 'off', '--max-retries', '1') == 0",
     "one allocation is repeated")
gate("gate-torch-oom", "torch_refused.py", "skipped-batches", "check() == 4 and check('--allow-oom') == 0",
     "four errors are caught, and nothing grows")
gate("gate-torch-fragmentation", "torch_refused.py", "fragmented-idle",
     "check('--leaks', 'off', '--max-fragmentation', '30') == 5 and "
     "check('--leaks', 'off', '--max-fragmentation', '60') == 0", "40 % of the reserve are idle while it serves")

# ---- gates on plain CUDA programs ----

gate("gate-exit-fixed-set", "healthy", "fixed-set", "check('--leaks', 'exit') == 1 and check('--leaks', 'grow') == 0",
     "never freed, and not growing")
gate("gate-exit-freed", "leaks", "list free", "check('--leaks', 'exit') == 0 and check('--leaks', 'grow') == 1",
     "growing, and freed at the end", about="growth")
gate("gate-default-plain", "leaks", "list return", "check() == 1", "without a framework the exit gate is the default",
     about="growth")
gate("gate-off", "leaks", "list return", "check('--leaks', 'off') == 0", "no gate is asked for", about="growth")
gate("gate-oom-outranks", "leaks", "until-full", "check() == 4 and check('--allow-oom') == 1",
     "an out-of-memory event outranks a leak", about={"growth", "oom: exhausted"})
gate("gate-min-bytes-of-the-sum", "leaks", "handlers free",
     "check('--leaks', 'grow', '--min-bytes', '8MiB') == 1 and check('--leaks', 'grow', '--min-bytes', '32MiB') == 0",
     "30 places forget 15 MiB together: --min-bytes is held against the sum", about="growth")
gate("gate-no-symbols", "leaks", "unrolled free",
     "check('--leaks', 'grow') == 1 and check('--leaks', 'grow', '--no-symbols') == 1",
     "the same verdict without symbols", about="growth")
gate("gate-no-symbols-recursion", "leaks", "recursion free",
     "check('--leaks', 'grow') == 1 and check('--leaks', 'grow', '--no-symbols') == 1",
     "the same verdict without symbols", about="growth")
gate("gate-max-peak", "healthy", "two-phases", "check('--leaks', 'off', '--max-peak', '400MiB') == 0 and "
     "check('--leaks', 'off', '--max-peak', '300MiB') == 5", "192 MiB of weights and 128 MiB of scratch memory: 320")
gate("gate-same-as-baseline", "leaks", "list free", "check('--leaks', 'grow', '--baseline', other('list free')) == 0",
     "no worse than the baseline", about="growth")
gate("gate-worse-than-baseline", "leaks", "list free",
     "check('--leaks', 'grow', '--baseline', other('overwritten')) == 1", "another leak than the baseline's",
     about="growth")
gate("gate-max-peak-growth", "healthy", "two-phases",
     "check('--leaks', 'off', '--max-peak-growth', '5%', '--baseline', other('fixed-set')) == 5 and "
     "check('--leaks', 'off', '--max-peak-growth', '60%', '--baseline', other('fixed-set')) == 0",
     "a peak of 320 MiB against one of 256: 25 % more")
gate("gate-max-growth", "leaks", "list free",
     "check('--leaks', 'off', '--max-growth', '100MiB') in (1, 5) and "
     "check('--leaks', 'off', '--max-growth', '400MiB') == 0",
     "240 MiB grow", about="growth")

assert len({case.name for case in ALL}) == len(ALL), "names are unique"

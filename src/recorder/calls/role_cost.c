/*
 * Roles of calls that take device memory without saying so: loading code, first launches, new
 * streams, raising limits. The cost of such a call is the rise of NVML's figure for the process, or
 * where NVML has none the fall of the driver's free bytes, which other processes change too; less
 * the rise of what the tracker explains, so that allocations, pools and costs of other calls are
 * not counted again.
 *
 * The driver and the tracker are read before and after the call. A reading is valid only if no
 * other thread had a call in flight (in_flight.h). A cost without two valid readings is left to the
 * ledger's unexplained part.
 */
#include "recorder/calls/role_cost.h"
#include "recorder/state/captures.h"
#include "recorder/calls/code_seen.h"
#include "recorder/calls/device_view.h"
#include "recorder/calls/internal.h"
#include "recorder/calls/role_pool.h"
#include "recorder/calls/role_steps.h"
#include "recorder/query/query.h"
#include "recorder/query/query_layout.h"
#include "recorder/state/fork_page.h"
#include "recorder/state/in_flight.h"
#include "track/contexts.h"
#include "track/costs.h"
#include "track/ledger.h"
#include "track/levels.h"
#include "track/pools.h"
#include "track/recording.h"
#include "track/work.h"

#include <errno.h>
#include <string.h>

/*
 * The reading after a call serves as the one before the next, if nothing was recorded since and for
 * so long.
 */
#define FRESH_NS 100000u
#define TRIES	 3
#define BURST_NS   100000000u
#define TIME_SHARE 64u

/* The driver's figures and what the tracker explains, of the same moment. */
struct reading {
	uint64_t free_bytes, total_bytes;
	uint64_t own_bytes; /* this process's bytes by NVML, GM_NO_BYTES: not known */
	uint64_t physical_bytes; /* gm_track_physical_bytes */
	uint64_t begun;	    /* calls so far (in_flight.h) */
	uint64_t period;    /* between two periods the tracker sees nothing */
	uint64_t time_ns;   /* 0: the reading is not valid */
	int64_t explained_bytes;
	uint32_t contexts; /* gm_track_context_changes */
	int32_t device;
};

static __thread struct {
	const struct gm_call *measuring; /* the outermost call that is measured, if one is */
	struct reading reading;		 /* the last one */
} last __attribute__((tls_model("initial-exec")));

/*
 * Bytes of this process. NVML lists it from its first context on or, as in some containers, never.
 */
static uint64_t own_bytes(int device)
{
	static int unlisted; /* NVML does not list this process, and is not asked again (atomic) */
	uint64_t bytes;

	if (__atomic_load_n(&unlisted, __ATOMIC_RELAXED))
		return GM_NO_BYTES;
	switch (gm_query_process_used(device, &bytes)) {
	case GM_NVML_LISTED:
		return bytes;
	case GM_NVML_UNLISTED:
		__atomic_store_n(&unlisted, 1, __ATOMIC_RELAXED);
		return GM_NO_BYTES;
	default:
		return GM_NO_BYTES;
	}
}

static bool try_reading(int device, struct reading *now)
{
	uint64_t begun;

	if (!gm_in_flight_none(&now->begun))
		return false;
	now->device = device;
	now->period = gm_file->periods;
	now->contexts = gm_track_context_changes();
	now->explained_bytes = gm_track_explained_bytes(device);
	now->physical_bytes = gm_track_physical_bytes(device);
	now->own_bytes = own_bytes(device);
	return gm_query_mem_info(&now->free_bytes, &now->total_bytes) &&
	       gm_in_flight_none(&begun) && begun == now->begun &&
	       gm_track_explained_bytes(device) == now->explained_bytes;
}

/*
 * By how much the device lost more than the records explain, by the process's figure where there is
 * one; 0 where only one of the readings has it: then the device's figure may be other processes'.
 */
static int64_t lost_between(const struct reading *before, const struct reading *now)
{
	bool own = now->own_bytes != GM_NO_BYTES;
	int64_t bytes = own ? (int64_t)(now->own_bytes - before->own_bytes)
			    : (int64_t)(before->free_bytes - now->free_bytes);

	if (own != (before->own_bytes != GM_NO_BYTES))
		return 0;
	return bytes - (now->explained_bytes - before->explained_bytes);
}

/*
 * Managed memory that a kernel touched cannot be separated from what calls took, so as much as
 * there is of it is left out.
 */
static int64_t without_managed(int device, int64_t bytes)
{
	int64_t managed = (int64_t)gm_track_managed_bytes(device);

	return bytes > managed ? bytes - managed : 0;
}

static uint64_t spent_ns; /* by readings so far (atomic) */

/*
 * A program that makes thousands of streams or modules a second is not to wait for readings: these
 * may take a 64th of its time, and 100 ms in all at its start; and as much again where a call is of
 * another sort than unmeasured ones before it. The costs of calls between two readings are told
 * together, see below.
 */
static bool is_affordable(bool another_sort)
{
	return __atomic_load_n(&spent_ns, __ATOMIC_RELAXED) <=
	       (BURST_NS + gm_track_now() / TIME_SHARE) << another_sort;
}

/* False while other threads change what the device holds. */
static bool take_reading(int device, struct reading *now)
{
	uint64_t began = gm_track_now();
	bool taken = false;
	unsigned i;

	if (gm_track_pools_idle())
		gm_sample_pools(); /* so that the tracker knows what they gave back by themselves */
	for (i = 0; i < TRIES && !taken; i++)
		taken = try_reading(device, now);
	__atomic_fetch_add(&spent_ns, gm_track_now() - began, __ATOMIC_RELAXED);
	return taken;
}

/* ---- calls that were not measured ---- */

/*
 * Calls since the latest valid reading, `base`, that were not measured. If all were of one sort,
 * what the device lost until the next reading is theirs. If there are modules or first launches
 * among several sorts, it is told as the launches': the driver loads code when it first needs it,
 * and code takes most.
 */
static struct {
	struct gm_lock lock;
	struct reading base;
	struct gm_cost_event sort;
	uint32_t calls;
	bool mixed;
} unmeasured;

/* Keeps a valid reading, after which nothing is unmeasured. */
static void set_base(const struct reading *now)
{
	if (!gm_lock_try(&unmeasured.lock))
		return;
	unmeasured.base = *now;
	unmeasured.calls = 0;
	unmeasured.mixed = false;
	gm_lock_release(&unmeasured.lock);
}

static bool is_of_code(enum gm_cost cost)
{
	return cost == GM_COST_MODULE || cost == GM_COST_LAUNCH;
}

/* True if a call of this kind cannot be told together with the unmeasured ones. */
static bool is_another_sort(enum gm_cost cost)
{
	return unmeasured.calls && unmeasured.sort.cost != cost &&
	       !(is_of_code(cost) && is_of_code(unmeasured.sort.cost));
}

static bool is_same_sort(const struct gm_cost_event *a, const struct gm_cost_event *b)
{
	return a->cost == b->cost && a->stack == b->stack && a->device == b->device;
}

/* Makes one sort of an event's and those of the unmeasured calls before. */
static void join_sorts(const struct gm_cost_event *event)
{
	struct gm_cost_event *sort = &unmeasured.sort;

	if (!(is_of_code(event->cost) || is_of_code(sort->cost)) || sort->device != event->device) {
		unmeasured.mixed = true;
		return;
	}
	sort->cost = GM_COST_LAUNCH;
	sort->object = 0;
	sort->stack = sort->module = GM_NONE;
}

static void count_unmeasured(const struct gm_cost_event *event)
{
	gm_track_ledger_missed(event->device);
	if (!gm_lock_try(&unmeasured.lock))
		return;
	if (!unmeasured.calls++)
		unmeasured.sort = *event;
	else if (!is_same_sort(&unmeasured.sort, event))
		join_sorts(event);
	gm_lock_release(&unmeasured.lock);
}

/*
 * Records what unmeasured calls took, now that there is a reading, before another call is measured
 * or the ledger is sampled.
 */
static void settle_unmeasured(struct reading *now)
{
	struct gm_cost_event event;
	struct reading base;
	uint32_t calls;

	if (!unmeasured.calls || !gm_lock_try(&unmeasured.lock))
		return;
	event = unmeasured.sort;
	base = unmeasured.base;
	calls = unmeasured.mixed || event.device != now->device || base.device != now->device ||
				base.contexts != now->contexts ||
				base.period != now->period || !base.time_ns
			? 0
			: unmeasured.calls;
	gm_lock_release(&unmeasured.lock);
	if (!calls)
		return;
	event.of_objects = event.object != 0;
	event.object = 0;
	event.explained_bytes = now->explained_bytes;
	event.bytes = without_managed(now->device, lost_between(&base, now));
	if (event.bytes > 0 && gm_track_cost(&event))
		now->explained_bytes += event.bytes;
}

void gm_settle_costs(void)
{
	int device = unmeasured.calls && !last.measuring ? gm_query_current_device() : -1;
	struct reading now;

	if (device < 0 || device != unmeasured.sort.device || !take_reading(device, &now))
		return;
	now.time_ns = gm_track_now();
	settle_unmeasured(&now);
	set_base(&now);
}

/* ---- around a call ---- */

static bool is_fresh(int device)
{
	uint64_t begun;

	return last.reading.time_ns && last.reading.device == device && gm_in_flight_none(&begun) &&
	       begun == last.reading.begun &&
	       gm_track_explained_bytes(device) == last.reading.explained_bytes &&
	       gm_track_now() - last.reading.time_ns < FRESH_NS;
}

void gm_begin_cost(struct gm_call *call, const struct gm_row *row,
		   const struct gm_role_cost *cost)
{
	call->free_before = GM_NO_BYTES;
	if (row->layer == GM_LAYER_RUNTIME)
		return; /* it is measured in the driver's calls that cudart makes */
	/*
	 * An outermost call is inside no other, and an inner call lies lower on the stack. A mark
	 * that contradicts this was left behind by a call that a jump or an exception ended.
	 */
	if (call->outermost || (uintptr_t)last.measuring <= (uintptr_t)call)
		last.measuring = NULL;
	if (last.measuring)
		return;
	if (row->role == GM_ROLE_LAUNCH && gm_query_capturing(call->stream, row->per_thread)) {
		gm_forget_launch(call->key);
		return; /* nothing runs yet, and queries could disturb a capture */
	}
	call->device = gm_query_current_device();
	if (call->device < 0)
		return;
	last.measuring = call;
	/* A reading follows the call, too. */
	if (!is_affordable(is_another_sort(cost->kind))) {
		last.reading.time_ns = 0;
		return;
	}
	if (!is_fresh(call->device)) {
		last.reading.time_ns = 0;
		if (!take_reading(call->device, &last.reading))
			return;
		settle_unmeasured(&last.reading);
	}
	call->free_before = last.reading.free_bytes;
	call->own_before = last.reading.own_bytes;
	call->explained_before = last.reading.explained_bytes;
	call->contexts = last.reading.contexts;
}

/* The cost of the call, 0 where it is not known. */
static int64_t measure(const struct gm_call *call, const struct gm_row *row,
		       const struct gm_role_cost *cost, struct reading *now)
{
	const struct reading before = {.free_bytes = call->free_before,
				       .own_bytes = call->own_before,
				       .explained_bytes = call->explained_before};
	int64_t bytes;

	now->time_ns = 0;
	if (call->free_before == GM_NO_BYTES || !take_reading(call->device, now) ||
	    now->contexts != call->contexts)
		return 0;
	now->time_ns = gm_track_now();
	bytes = lost_between(&before, now);
	if (bytes <= 0)
		return cost->gives ? bytes : 0; /* else other calls gave it back */
	return row->role == GM_ROLE_LAUNCH ? without_managed(call->device, bytes) : bytes;
}

static void note_limit(const struct gm_call *call)
{
	if (call->limit == GM_LIMIT_STACK_SIZE) {
		gm_track_limits(call->bytes, GM_NO_BYTES);
		gm_forget_launches(); /* local memory shrank, a launch may grow it again */
	} else if (call->limit == GM_LIMIT_MALLOC_HEAP_SIZE) {
		gm_track_limits(GM_NO_BYTES, call->bytes);
	}
}

static enum gm_cost kind_of(const struct gm_call *call, const struct gm_row *row,
			    const struct gm_role_cost *cost)
{
	if (row->role == GM_ROLE_LIMIT && call->limit == GM_LIMIT_MALLOC_HEAP_SIZE)
		return GM_COST_HEAP_LIMIT;
	return cost->kind;
}

/* The object that a successful call made or destroyed, and of a graph how large it is. */
static void name_object(const struct gm_call *call, const struct gm_row *row,
			struct gm_cost_event *event)
{
	event->handle = event->object > 0 ? gm_read_out(call) : call->key;
	if (row->role == GM_ROLE_GRAPH_EXEC_DESTROY)
		event->handle = call->exec;
	if (row->role == GM_ROLE_GRAPH_INSTANTIATE) {
		event->graph = call->graph;
		event->nodes = gm_query_graph_size(call->graph);
	}
}

/*
 * The reading after the call is a sample of the ledger that takes no more queries, if NVML tells
 * the process's figure. `event`: what was recorded of the call.
 */
static void sample_after(const struct gm_cost_event *event)
{
	const struct reading *now = &last.reading;
	struct gm_device_view view = {GM_NO_BYTES, GM_NO_BYTES, GM_NO_BYTES,
				      GM_NO_BYTES, GM_NO_BYTES, GM_NONE};

	if (!now->time_ns) {
		count_unmeasured(event);
		return;
	}
	set_base(now);
	if (now->own_bytes == GM_NO_BYTES || !gm_track_ledger_sampled(now->device)) {
		gm_sample_ledger(now->device, GM_SAMPLE_TAKEN);
		return;
	}
	view.own_bytes = now->own_bytes;
	view.used_bytes = now->total_bytes - now->free_bytes;
	gm_track_ledger(now->device, GM_SAMPLE_TAKEN, now->physical_bytes, &view);
}

void gm_end_cost(struct gm_call *call, const struct gm_row *row, const struct gm_role_cost *cost,
		 int result)
{
	struct gm_cost_event event = {
		.cost = kind_of(call, row, cost),
		.object = cost->objects,
		.module = GM_NONE,
		.stack = GM_NONE,
	};
	bool recorded = false;
	unsigned i;

	if (row->layer == GM_LAYER_RUNTIME)
		return;
	if (result == GM_CUDA_SUCCESS && row->role == GM_ROLE_MODULE_UNLOAD)
		gm_forget_uses();
	if (last.measuring && last.measuring != call)
		return;
	last.measuring = NULL;
	event.device = call->device < 0 ? gm_context_device() : call->device;
	/* The tracker does not accept a cost if another was recorded since the reading. */
	for (i = 0; i <= TRIES && !recorded; i++) {
		event.bytes = i < TRIES ? measure(call, row, cost, &last.reading) : 0;
		event.explained_bytes = last.reading.explained_bytes;
		if (result != GM_CUDA_SUCCESS || (!event.bytes && !event.object))
			break;
		if (event.object)
			name_object(call, row, &event);
		if (event.stack == GM_NONE)
			event.stack = gm_outer_call_stack(call, &event.module);
		recorded = gm_track_cost(&event);
	}
	if (recorded)
		last.reading.explained_bytes += event.bytes;
	if (result == GM_CUDA_SUCCESS)
		sample_after(&event);
	if (result == GM_CUDA_SUCCESS && row->role == GM_ROLE_LIMIT)
		note_limit(call);
}

/* ---- samples that follow other calls ---- */

void gm_sample_by_time(void)
{
	uint64_t began = gm_track_now();

	/* A capture could be disturbed by the queries. */
	if (!gm_track_ledger_schedule(began, 0) || gm_captures_under_way())
		return;
	gm_settle_costs();
	gm_sample_ledgers(GM_SAMPLE_TIME);
	gm_track_ledger_schedule(gm_track_now(), gm_track_now() - began);
}

void gm_sample_at_launch(void)
{
	int *error = &errno, saved = *error;

	if (!gm_owns_file() || !gm_enter_tracker())
		return;
	gm_track_launched(gm_launches_since());
	if (gm_track_ledger_by_time(gm_track_now()))
		gm_sample_by_time();
	gm_leave_tracker();
	*error = saved;
}

void gm_sample_peaks_of_all(void)
{
	int device = gm_track_ledger_peak(0);

	if (device >= 0)
		gm_settle_costs();
	for (; device >= 0; device = gm_track_ledger_peak(device + 1))
		gm_sample_ledger(device, GM_SAMPLE_PEAK);
}

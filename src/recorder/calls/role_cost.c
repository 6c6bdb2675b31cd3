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
#include "recorder/calls/code_seen.h"
#include "recorder/calls/internal.h"
#include "recorder/calls/role_pool.h"
#include "recorder/calls/role_steps.h"
#include "recorder/query/query.h"
#include "recorder/state/in_flight.h"
#include "track/contexts.h"
#include "track/costs.h"
#include "track/levels.h"
#include "track/pools.h"
#include "track/recording.h"

#include <string.h>

/*
 * The reading after a call serves as the one before the next, if nothing was recorded since and for
 * so long.
 */
#define FRESH_NS 100000u
#define TRIES	 3

/* The column `cost` of roles.def. */
#define NO_COST		    {0, 0, false}
#define TAKES(what, number) {GM_COST_##what, number, false}
#define GIVES(what, number) {GM_COST_##what, number, true}

static const struct {
	uint8_t kind;	/* enum gm_cost */
	int8_t objects; /* that come by the call */
	bool gives;	/* it may return memory */
} costs[GM_ROLES] = {
#define GM_ROLE(name, class, nesting, memory, entry, source, cost, ...) [GM_ROLE_##name] = cost,
#include "api/roles.def"
};

/* The driver's figures and what the tracker explains, of the same moment. */
struct reading {
	uint64_t free_bytes;
	uint64_t own_bytes; /* this process's bytes by NVML, GM_NO_BYTES: not known */
	uint64_t begun;	    /* calls so far (in_flight.h) */
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
	uint64_t total, begun;

	if (!gm_in_flight_none(&now->begun))
		return false;
	now->device = device;
	now->contexts = gm_track_context_changes();
	now->explained_bytes = gm_track_explained_bytes(device);
	now->own_bytes = own_bytes(device);
	return gm_query_mem_info(&now->free_bytes, &total) && gm_in_flight_none(&begun) &&
	       begun == now->begun && gm_track_explained_bytes(device) == now->explained_bytes;
}

/* False while other threads change what the device holds. */
static bool take_reading(int device, struct reading *now)
{
	unsigned i;

	if (gm_track_pools_idle())
		gm_sample_pools(); /* so that the tracker knows what they gave back by themselves */
	for (i = 0; i < TRIES; i++)
		if (try_reading(device, now))
			return true;
	return false;
}

static bool is_fresh(int device)
{
	uint64_t begun;

	return last.reading.time_ns && last.reading.device == device && gm_in_flight_none(&begun) &&
	       begun == last.reading.begun &&
	       gm_track_explained_bytes(device) == last.reading.explained_bytes &&
	       gm_track_now() - last.reading.time_ns < FRESH_NS;
}

void gm_begin_cost(struct gm_call *call, const struct gm_row *row)
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
	if (!is_fresh(call->device)) {
		last.reading.time_ns = 0;
		if (!take_reading(call->device, &last.reading))
			return;
	}
	call->free_before = last.reading.free_bytes;
	call->own_before = last.reading.own_bytes;
	call->explained_before = last.reading.explained_bytes;
	call->contexts = last.reading.contexts;
}

/*
 * The cost of the call, 0 where it is not known. Managed memory that a kernel touched cannot be
 * separated from what the launch itself took, so as much as there is of it is left out.
 */
static int64_t measure(const struct gm_call *call, const struct gm_row *row, struct reading *now)
{
	int64_t bytes, managed = (int64_t)gm_track_managed_bytes(call->device);

	now->time_ns = 0;
	if (call->free_before == GM_NO_BYTES || !take_reading(call->device, now) ||
	    now->contexts != call->contexts)
		return 0;
	now->time_ns = gm_track_now();
	if (call->own_before != GM_NO_BYTES && now->own_bytes != GM_NO_BYTES)
		bytes = (int64_t)(now->own_bytes - call->own_before);
	else
		bytes = (int64_t)(call->free_before - now->free_bytes);
	bytes -= now->explained_bytes - call->explained_before;
	if (bytes <= 0)
		return costs[row->role].gives ? bytes : 0; /* else other calls gave it back */
	return row->role == GM_ROLE_LAUNCH && managed ? bytes > managed ? bytes - managed : 0
						      : bytes;
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

static enum gm_cost cost_of(const struct gm_call *call, const struct gm_row *row)
{
	if (row->role == GM_ROLE_LIMIT && call->limit == GM_LIMIT_MALLOC_HEAP_SIZE)
		return GM_COST_HEAP_LIMIT;
	return costs[row->role].kind;
}

void gm_end_cost(struct gm_call *call, const struct gm_row *row, int result)
{
	struct gm_cost_event event = {
		.cost = cost_of(call, row),
		.object = costs[row->role].objects,
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
		event.bytes = i < TRIES ? measure(call, row, &last.reading) : 0;
		event.explained_bytes = last.reading.explained_bytes;
		if (result != GM_CUDA_SUCCESS || (!event.bytes && !event.object))
			break;
		if (event.stack == GM_NONE)
			event.stack = gm_outer_call_stack(call, &event.module);
		recorded = gm_track_cost(&event);
	}
	if (recorded)
		last.reading.explained_bytes += event.bytes;
	if (result == GM_CUDA_SUCCESS && row->role == GM_ROLE_LIMIT)
		note_limit(call);
}

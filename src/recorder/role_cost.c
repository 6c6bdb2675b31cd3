/*
 * Roles of calls that take device memory without saying so: loading code, first launches, new streams,
 * raising limits. What one took is by how much NVML's figure for the process rose (without one, the
 * driver's free bytes fell: what other processes take enters then), less by how much the books rose:
 * allocations, pools and costs of other calls are not counted again. It is known only when no other
 * thread was in the middle of a call that changes memory at either look; else it is left to the ledger's
 * unexplained part.
 */
#include "recorder/code_seen.h"
#include "recorder/in_flight.h"
#include "recorder/internal.h"
#include "track/torch.h"

#include <string.h>

/* A look is good for the next call too if nothing was recorded in between for so long. */
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

/* The driver's figures and what the books explain, of the same moment. */
struct look {
	uint64_t free_bytes;
	uint64_t own_bytes; /* this process's, by NVML; GM_NO_BYTES where it does not say */
	uint64_t begun, time_ns;
	int64_t explained_bytes;
	uint32_t contexts; /* that came or went so far */
	int32_t device;
};

static __thread struct {
	const struct gm_call *measuring; /* the outermost such call; those inside it are its parts */
	struct look look;		 /* time 0: none */
} last __attribute__((tls_model("initial-exec")));

/* NVML lists the process from its first context on, or, as in some containers, never. */
static uint64_t own_bytes(int device)
{
	static int unlisted; /* 1: not asked any more (atomic) */
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

static bool look_again(int device, struct look *now)
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

/* False when other threads are changing what the device holds. */
static bool look(int device, struct look *now)
{
	unsigned i;

	if (gm_track_pools_idle())
		gm_sample_pools(); /* what they gave back by themselves is then in the books */
	for (i = 0; i < TRIES; i++)
		if (look_again(device, now))
			return true;
	return false;
}

static bool still_good(int device)
{
	uint64_t begun;

	return last.look.time_ns && last.look.device == device && gm_in_flight_none(&begun) &&
	       begun == last.look.begun &&
	       gm_track_explained_bytes(device) == last.look.explained_bytes &&
	       gm_track_now() - last.look.time_ns < FRESH_NS;
}

void gm_begin_cost(struct gm_call *call, const struct gm_row *row)
{
	call->free_before = GM_NO_BYTES;
	if (row->layer == GM_LAYER_RUNTIME)
		return; /* cudart asks the driver: seen there */
	/* An outermost call is inside no other, an inner one lies lower on the stack: a mark that says
	 * otherwise was left by a call that a jump or an exception ended. */
	if (call->outermost || (uintptr_t)last.measuring <= (uintptr_t)call)
		last.measuring = NULL;
	if (last.measuring)
		return;
	if (row->role == GM_ROLE_LAUNCH && gm_query_capturing(call->stream, row->per_thread)) {
		gm_forget_launch(call->key);
		return; /* nothing runs yet, and a capture is not to be disturbed */
	}
	call->device = gm_query_current_device();
	if (call->device < 0)
		return;
	last.measuring = call;
	if (!still_good(call->device)) {
		last.look.time_ns = 0;
		if (!look(call->device, &last.look))
			return;
	}
	call->free_before = last.look.free_bytes;
	call->own_before = last.look.own_bytes;
	call->explained_before = last.look.explained_bytes;
	call->contexts = last.look.contexts;
}

/* What the call took; 0 where that cannot be told. Managed memory that a kernel touched is not told
 * from what the launch itself took: as much as there is of it is left out. */
static int64_t taken(const struct gm_call *call, const struct gm_row *row, struct look *now)
{
	int64_t bytes, managed = (int64_t)gm_track_managed_bytes(call->device);

	now->time_ns = 0;
	if (call->free_before == GM_NO_BYTES || !look(call->device, now) ||
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
	return row->role == GM_ROLE_LAUNCH && managed ? bytes > managed ? bytes - managed : 0 : bytes;
}

static void note_limit(const struct gm_call *call)
{
	if (call->limit == GM_LIMIT_STACK_SIZE) {
		gm_track_limits(call->bytes, GM_NO_BYTES);
		gm_forget_launches(); /* local memory is given back; the next launch may take it again */
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
	bool booked = false;
	unsigned i;

	if (row->layer == GM_LAYER_RUNTIME)
		return;
	if (result == GM_CUDA_SUCCESS && row->role == GM_ROLE_MODULE_UNLOAD)
		gm_forget_uses();
	if (last.measuring && last.measuring != call)
		return;
	last.measuring = NULL;
	event.device = call->device < 0 ? gm_context_device() : call->device;
	/* Not booked: another thread's call was, since the look. */
	for (i = 0; i <= TRIES && !booked; i++) {
		event.bytes = i < TRIES ? taken(call, row, &last.look) : 0;
		event.explained_bytes = last.look.explained_bytes;
		if (result != GM_CUDA_SUCCESS || (!event.bytes && !event.object))
			break;
		if (event.stack == GM_NONE)
			event.stack = gm_outer_call_stack(call, &event.module);
		booked = gm_track_cost(&event);
	}
	if (booked)
		last.look.explained_bytes += event.bytes;
	if (result == GM_CUDA_SUCCESS && row->role == GM_ROLE_LIMIT)
		note_limit(call);
}

/*
 * Roles of calls that take device memory without saying so: loading code, raising limits. What they
 * took is the driver's free bytes before less those after, when nothing else was recorded meanwhile.
 */
#include "interpose/ask.h"
#include "interpose/pass.h"
#include "interpose/role_steps.h"
#include "store/writer.h"

#include <string.h>

/* A measurement is good for the next call too if nothing was recorded in between for so long. */
#define FRESH_NS 100000u

#define LAUNCH_PROBES 16u

uint64_t gm_launches[GM_LAUNCH_SLOTS];

static __thread struct {
	const struct gm_call *measuring; /* the outermost such call; those inside it are its parts */
	uint64_t free_bytes, events, time_ns;
	int32_t device;
} last __attribute__((tls_model("initial-exec")));

static uint64_t free_bytes(int device)
{
	uint64_t free_now, total, now = gm_track_now();

	if (last.events == gm_file->events && last.device == device && last.time_ns &&
	    now - last.time_ns < FRESH_NS)
		return last.free_bytes;
	return gm_ask_mem_info(&free_now, &total) ? free_now : GM_NO_BYTES;
}

bool gm_first_launch(uint64_t function)
{
	uint32_t first = gm_launch_slot(function);
	unsigned i;

	for (i = 0; i < LAUNCH_PROBES; i++) {
		uint64_t *slot = &gm_launches[(first + i) % GM_LAUNCH_SLOTS];
		uint64_t found = __atomic_load_n(slot, __ATOMIC_RELAXED);

		if (found == function)
			return false;
		if (!found && __atomic_compare_exchange_n(slot, &found, function, false,
							  __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			return true;
		if (found == function)
			return false;
	}
	return false; /* the table is full here: this kernel's first launch is not measured */
}

void gm_begin_cost(struct gm_call *call, const struct gm_row *row)
{
	call->free_before = GM_NO_BYTES;
	if (row->layer == GM_LAYER_RUNTIME)
		return; /* cudart asks the driver: seen there */
	/* An inner call lies lower on the stack; a mark that lies lower was left by a longjmp. */
	if (last.measuring && (uintptr_t)last.measuring > (uintptr_t)call)
		return;
	if (row->role == GM_ROLE_LAUNCH && gm_ask_capturing(call->stream, gm_per_thread(row)))
		return; /* nothing runs yet, and a capture is not to be disturbed */
	call->device = gm_ask_current_device();
	if (call->device < 0)
		return;
	last.measuring = call;
	call->free_before = free_bytes(call->device);
	call->ticket_serial = gm_file->events;
}

static int64_t difference(const struct gm_call *call)
{
	uint64_t free_now, total;

	last.time_ns = 0;
	if (call->free_before == GM_NO_BYTES || call->ticket_serial != gm_file->events ||
	    !gm_ask_mem_info(&free_now, &total))
		return 0;
	last.free_bytes = free_now;
	last.events = gm_file->events;
	last.device = call->device;
	last.time_ns = gm_track_now();
	return (int64_t)(call->free_before - free_now);
}

static void note_limit(const struct gm_call *call)
{
	if (call->limit == GM_LIMIT_STACK_SIZE)
		gm_track_limits(call->bytes, GM_NO_BYTES);
	else if (call->limit == GM_LIMIT_MALLOC_HEAP_SIZE)
		gm_track_limits(GM_NO_BYTES, call->bytes);
}

static enum gm_cost cost_of(const struct gm_call *call, const struct gm_row *row)
{
	if (row->role == GM_ROLE_LAUNCH)
		return GM_COST_LAUNCH;
	if (row->role != GM_ROLE_LIMIT)
		return GM_COST_MODULE;
	return call->limit == GM_LIMIT_MALLOC_HEAP_SIZE ? GM_COST_HEAP_LIMIT : GM_COST_STACK_LIMIT;
}

void gm_end_cost(struct gm_call *call, const struct gm_row *row, int result)
{
	int object = row->role == GM_ROLE_MODULE_LOAD ? 1 : row->role == GM_ROLE_MODULE_UNLOAD ? -1 : 0;
	uint32_t module = GM_NONE, stack;
	int64_t bytes;

	if (row->layer == GM_LAYER_RUNTIME || (last.measuring && last.measuring != call))
		return;
	bytes = difference(call);
	if (last.measuring == call)
		last.measuring = NULL;
	if (result != GM_CUDA_SUCCESS)
		return;
	if (row->role == GM_ROLE_LIMIT)
		note_limit(call);
	if (!bytes && !object)
		return;
	stack = gm_take_outer_stack(call, &module);
	gm_track_cost(call->device < 0 ? gm_context_device() : call->device, cost_of(call, row), bytes,
		      object, module, stack);
}

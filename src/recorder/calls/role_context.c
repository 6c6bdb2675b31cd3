/*
 * Roles of contexts: which context an allocation belongs to, what a context cost, what its end
 * frees.
 */
#include "recorder/calls/role_context.h"
#include "recorder/calls/code_seen.h"
#include "recorder/calls/device_view.h"
#include "recorder/calls/internal.h"
#include "recorder/calls/role_pool.h"
#include "recorder/calls/role_steps.h"
#include "track/contexts.h"
#include "track/costs.h"
#include "track/devices.h"

__thread struct gm_last_context gm_last_context __attribute__((tls_model("initial-exec")));

/*
 * Enters a context that no recorded call made: cudart has a way of its own, and some are older than
 * the file.
 */
static uint32_t discover(const struct gm_call *call, uint64_t handle)
{
	int device = gm_context_device();

	gm_note_device(device);
	gm_track_context_untold();
	return gm_track_context_made(handle, device, true, false, GM_NO_BYTES,
				     gm_outer_call_stack(call, NULL));
}

uint32_t gm_find_context(const struct gm_call *call, uint64_t handle)
{
	struct gm_last_context *last = &gm_last_context;

	if (!handle)
		return 0;
	last->number = gm_track_context(handle);
	if (last->number == GM_NONE)
		last->number = discover(call, handle);
	last->handle = handle;
	last->changes = gm_track_context_changes();
	return last->number + 1;
}

/* Queries NVML, because the driver reports free bytes only in a context. */
void gm_begin_context(struct gm_call *call, const struct gm_row *row)
{
	uint64_t used;

	call->free_before = GM_NO_BYTES;
	call->own_before = GM_NO_BYTES;
	if (row->role == GM_ROLE_CTX_RETAIN && gm_query_primary_active(call->device, false))
		return; /* one more reference to it costs nothing */
	if (gm_query_device_used(call->device, &used))
		call->free_before = used;
	/* A process that NVML does not list has no context yet and so uses 0 bytes. */
	if (gm_query_process_used(call->device, &used) != GM_NVML_UNKNOWN)
		call->own_before = used;
	call->explained_before = gm_track_explained_bytes(call->device);
}

/*
 * The cost by the figure that the ledger uses later, which is the process's own where NVML has it.
 * The device's figure rises by more (5.6 MiB on an H200), and with what other processes take.
 */
static uint64_t context_cost(const struct gm_call *call)
{
	uint64_t used, before = call->own_before;
	int64_t cost;

	if (call->free_before == GM_NO_BYTES)
		return GM_NO_BYTES;
	if (before == GM_NO_BYTES || gm_query_process_used(call->device, &used) != GM_NVML_LISTED) {
		if (!gm_query_device_used(call->device, &used))
			return GM_NO_BYTES;
		before = call->free_before;
	}
	cost = (int64_t)(used - before) -
	       (gm_track_explained_bytes(call->device) - call->explained_before);
	return cost > 0 ? (uint64_t)cost : 0;
}

void gm_end_context(struct gm_call *call, const struct gm_row *row, int result)
{
	bool primary = row->role == GM_ROLE_CTX_RETAIN;
	uint64_t handle = gm_read_out(call);
	uint64_t cost = GM_NO_BYTES;
	uint32_t stack = GM_NONE;

	if (result != GM_CUDA_SUCCESS)
		return;
	gm_note_device(call->device);
	if (call->free_before != GM_NO_BYTES)
		gm_track_used_before(call->device, call->free_before);
	if (gm_track_context(handle) == GM_NONE) {
		cost = context_cost(call);
		stack = gm_outer_call_stack(call, NULL);
	}
	gm_track_context_made(handle, call->device, primary, false, cost, stack);
	if (stack != GM_NONE || !gm_track_ledger_sampled(call->device))
		gm_sample_ledger(call->device, GM_SAMPLE_CONTEXT);
}

static void primary_gone(const struct gm_call *call, enum gm_implicit_cause cause)
{
	gm_track_context_gone(0, call->device, cause, gm_outer_call_stack(call, NULL));
	gm_forget_code();
	gm_sample_pools();
}

void gm_end_release_context(struct gm_call *call, const struct gm_row *row, int result)
{
	(void)row;
	if (result == GM_CUDA_SUCCESS && !gm_query_primary_active(call->device, true))
		primary_gone(call, GM_IMPLICIT_CONTEXT_DESTROY);
}

void gm_end_destroy_context(struct gm_call *call, const struct gm_row *row, int result)
{
	(void)row;
	if (result != GM_CUDA_SUCCESS || !call->key)
		return;
	if (call->function == GM_FN_cuCtxDetach && gm_query_current_context() == call->key)
		return; /* it undid a cuCtxAttach; the context is still current */
	gm_track_context_gone(call->key, GM_HOST, GM_IMPLICIT_CONTEXT_DESTROY,
			      gm_outer_call_stack(call, NULL));
	gm_forget_code();
	gm_sample_pools();
}

/*
 * A green context shares the primary context's memory: it is listed, but allocations are the
 * primary's.
 */
void gm_end_green(struct gm_call *call, const struct gm_row *row, int result)
{
	uint64_t handle;

	(void)row;
	if (result != GM_CUDA_SUCCESS)
		return;
	handle = gm_query_green_context(gm_read_out(call));
	gm_note_device(call->device);
	gm_track_context_made(handle, call->device, false, true, context_cost(call),
			      gm_outer_call_stack(call, NULL));
	gm_sample_ledger(call->device, GM_SAMPLE_CONTEXT);
}

void gm_begin_destroy_green(struct gm_call *call, const struct gm_row *row)
{
	(void)row;
	call->handle = gm_query_green_context(call->key);
}

void gm_end_destroy_green(struct gm_call *call, const struct gm_row *row, int result)
{
	(void)row;
	if (result == GM_CUDA_SUCCESS && call->handle)
		gm_track_context_gone(call->handle, GM_HOST, GM_IMPLICIT_CONTEXT_DESTROY, GM_NONE);
}

void gm_begin_reset(struct gm_call *call, const struct gm_row *row)
{
	(void)row;
	if (call->device < 0)
		call->device = gm_query_current_device();
}

void gm_end_reset(struct gm_call *call, const struct gm_row *row, int result)
{
	(void)row;
	if (result == GM_CUDA_SUCCESS && call->device >= 0)
		primary_gone(call, GM_IMPLICIT_DEVICE_RESET);
}

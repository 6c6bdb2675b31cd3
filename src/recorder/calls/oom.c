/*
 * Calls that were refused for want of memory, with what the device held then.
 */
#include "recorder/calls/oom.h"
#include "recorder/calls/call.h"
#include "recorder/calls/device_view.h"
#include "recorder/calls/role_cost.h"
#include "recorder/calls/role_pool.h"
#include "recorder/calls/role_steps.h"
#include "recorder/process/held_copy.h"
#include "recorder/query/query.h"
#include "recorder/state/fork_page.h"
#include "track/clock.h"
#include "track/driver_allocs.h"
#include "track/levels.h"
#include "track/torch_memory.h"

#include <errno.h>

/*
 * `record` enters the event, whose view is set here. What calls before took that was not measured
 * is told first, so that the ledger of that moment has it in its rows.
 */
static void record_with_view(struct gm_event *event, void (*record)(const struct gm_event *))
{
	struct gm_device_view view;
	uint64_t tracked;
	bool nvml;

	gm_sample_pools(); /* before a call fails, the driver takes what is idle in them */
	gm_settle_costs();
	tracked = gm_track_physical_bytes(event->device);
	nvml = gm_track_ledger_due(event->device, GM_SAMPLE_OOM);
	gm_view_device(event->device, nvml, &view);
	event->view = &view;
	record(event);
	if (nvml)
		gm_track_ledger(event->device, GM_SAMPLE_OOM, tracked, &view);
}

void gm_record_oom(const struct gm_call *call, struct gm_event *event)
{
	event->injected = call->injected;
	record_with_view(event, gm_track_alloc_failed);
	/* PyTorch may be served after all, when it has given back what it keeps. */
	if (!gm_track_torch_seen())
		gm_holders_moment(GM_HOLDERS_OOM);
}

void gm_record_refusal(const struct gm_call *call, const struct gm_row *row)
{
	struct gm_event event = gm_event_of(call, row, GM_CUDA_OUT_OF_MEMORY);

	event.key = 0;
	if (row->role == GM_ROLE_LIMIT)
		event.bytes = 0; /* a limit is no size */
	if (event.device < 0)
		event.device = (int16_t)gm_context_device();
	event.stack = gm_call_stack(call, 0, &event.caller_module);
	record_with_view(&event, gm_track_refused);
}

void gm_record_refused_launch(uint32_t function, struct gm_entry caller)
{
	struct gm_call call = GM_CALL(function, caller);
	int *error = &errno, saved = *error;

	if (gm_is_nested((uintptr_t)&call) || !gm_owns_file() || !gm_enter_tracker())
		return;
	call.ticks = gm_clock_ticks();
	gm_record_refusal(&call, &gm_rows[function]);
	gm_leave_tracker();
	*error = saved;
}

/*
 * Steps that the roles share (role_steps.h).
 */
#include "recorder/calls/role_steps.h"
#include "recorder/query/query.h"
#include "track/event.h"

uint32_t gm_outer_call_stack(const struct gm_call *call, uint32_t *module)
{
	return gm_call_stack(gm_call_outermost(call), 0, module);
}

struct gm_event gm_event_of(const struct gm_call *call, const struct gm_row *row, int result)
{
	return (struct gm_event){
		.key = call->key,
		.bytes = call->bytes,
		.stream = call->stream,
		.ticks = call->ticks,
		.stack = GM_NONE,
		.caller_module = GM_NONE,
		.owner = GM_NONE,
		.error = result,
		.kind = row->kind,
		.space = gm_space_of(call, row),
		.level = GM_LEVEL_DRIVER,
		.device = (int16_t)call->device,
		.function = gm_function_of(call, row),
	};
}

int gm_context_device(void)
{
	int device = gm_query_device_count() == 1 ? 0 : gm_query_current_device();

	return device < 0 ? 0 : device;
}

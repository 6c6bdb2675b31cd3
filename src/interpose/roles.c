/*
 * What each role of the table means (roles.h). One pair of functions per role, in a table at the end.
 */
#include "interpose/roles.h"
#include "interpose/ask.h"
#include "interpose/preload.h"
#include "interpose/resolve.h"
#include "stack/stack.h"
#include "track/event.h"

#include <string.h>

/* ---- steps that roles share ---- */

static uint32_t take_stack(const struct gm_call *call, unsigned limit, uint32_t *module)
{
	struct gm_raw_stack raw;

	gm_stack_capture(&raw, call->caller, limit);
	return gm_stack_intern(&raw, module);
}

static uint64_t read_out(const struct gm_call *call)
{
	uint32_t narrow;
	uint64_t wide;

	if (!call->out)
		return 0;
	if (call->narrow) {
		memcpy(&narrow, call->out, sizeof(narrow));
		return narrow;
	}
	memcpy(&wide, call->out, sizeof(wide));
	return wide;
}

/* An event about `key` with what all of them say. Device and bytes are the caller's business. */
static struct gm_event event_of(const struct gm_call *call, const struct gm_row *row, int result)
{
	struct gm_event event = {
		.key = call->key,
		.bytes = call->bytes,
		.stream = call->stream,
		.stack = GM_NONE,
		.caller_module = GM_NONE,
		.owner = GM_NONE,
		.error = result,
		.kind = row->kind,
		.space = call->space,
		.level = GM_LEVEL_DRIVER,
		.device = (int16_t)call->device,
		.function = gm_track_function(call->function, row->name, row->layer),
	};

	if (event.space == GM_SPACE_POINTER && row->kind == GM_KIND_ARRAY)
		event.space = GM_SPACE_ARRAY;
	if (row->kind == GM_KIND_REGISTERED)
		event.space = GM_SPACE_REGISTERED;
	return event;
}

static uint64_t asked_bytes(const struct gm_call *call)
{
	uint64_t pitch;

	if (!call->rows)
		return call->bytes;
	pitch = call->bytes;
	if (call->pitch && call->narrow) {
		uint32_t narrow;

		memcpy(&narrow, call->pitch, sizeof(narrow));
		pitch = narrow;
	} else if (call->pitch) {
		memcpy(&pitch, call->pitch, sizeof(pitch));
	}
	return pitch * call->rows;
}

static int context_device(void)
{
	int device = gm_ask_device_count() == 1 ? 0 : gm_ask_current_device();

	return device < 0 ? 0 : device;
}

static bool on_host(const struct gm_call *call, unsigned kind)
{
	const CUmemLocation *location = call->location;

	if (kind == GM_KIND_PINNED || kind == GM_KIND_REGISTERED)
		return true;
	return kind == GM_KIND_VMM && location && location->type > GM_MEM_LOCATION_DEVICE;
}

/* The device that the memory of a successful call lies on. */
static int device_of(const struct gm_call *call, unsigned kind, uint64_t key)
{
	const CUmemLocation *location = call->location;

	if (on_host(call, kind))
		return GM_HOST;
	if (location && location->type == GM_MEM_LOCATION_DEVICE)
		return location->id;
	if (gm_ask_device_count() == 1)
		return 0;
	if ((kind == GM_KIND_ASYNC || kind == GM_KIND_IMPORTED) && call->space == GM_SPACE_POINTER)
		return gm_ask_pointer_device(key, context_device());
	return context_device();
}

static bool per_thread(const struct gm_row *row)
{
	size_t bytes = strlen(row->name);

	return bytes > 5 && !strcmp(row->name + bytes - 5, "_ptsz");
}

/* ---- allocations ---- */

static void end_alloc(struct gm_call *call, const struct gm_row *row, int result)
{
	struct gm_event event = event_of(call, row, result);

	if (result != GM_CUDA_SUCCESS) {
		event.key = 0;
		event.device = (int16_t)(on_host(call, row->kind) ? GM_HOST : context_device());
		event.bytes = call->rows ? call->bytes * call->rows : call->bytes;
		event.stack = take_stack(call, 0, &event.caller_module);
		gm_track_alloc_failed(&event);
		return;
	}
	event.key = read_out(call);
	if (!event.key)
		return; /* nothing was asked for */
	event.bytes = asked_bytes(call);
	if (row->kind == GM_KIND_ASYNC && gm_ask_capturing(call->stream, per_thread(row)))
		event.kind = GM_KIND_GRAPH;
	if (call->ipc)
		event.bytes = gm_ask_pointer_bytes(event.key);
	if (event.kind == GM_KIND_IMPORTED)
		event.flags |= GM_ALLOC_NOT_OWNED;
	if (event.kind == GM_KIND_GRAPH)
		event.flags |= GM_ALLOC_CAPTURED;
	event.device = (int16_t)device_of(call, event.kind, event.key);
	gm_ask_describe_device(event.device);
	event.stack = take_stack(call, 0, &event.caller_module);
	gm_track_alloc(&event);
}

static void end_register(struct gm_call *call, const struct gm_row *row, int result)
{
	struct gm_event event = event_of(call, row, result);

	event.device = GM_HOST;
	event.flags |= GM_ALLOC_NOT_OWNED;
	event.stack = take_stack(call, 0, &event.caller_module);
	if (result == GM_CUDA_SUCCESS)
		gm_track_alloc(&event);
	else
		gm_track_alloc_failed(&event);
}

/* ---- frees ---- */

static void begin_free(struct gm_call *call, const struct gm_row *row)
{
	struct gm_event event = event_of(call, row, 0);
	struct gm_ticket ticket = gm_track_free_begin(event.space, event.key);

	call->ticket_record = ticket.record;
	call->ticket_serial = ticket.serial;
}

static void end_free(struct gm_call *call, const struct gm_row *row, int result)
{
	struct gm_ticket ticket = {.record = call->ticket_record, .serial = call->ticket_serial};
	struct gm_event event = event_of(call, row, result);

	if (!call->key)
		return; /* freeing NULL is legal everywhere */
	event.device = GM_HOST;
	event.stack = take_stack(call, GM_SHALLOW_FRAMES, &event.caller_module);
	gm_track_free_end(ticket, &event);
}

static void end_export(struct gm_call *call, const struct gm_row *row, int result)
{
	(void)row;
	if (result == GM_CUDA_SUCCESS)
		gm_track_exported(call->space, call->key);
}

/* ---- virtual memory ---- */

static void end_reserve(struct gm_call *call, const struct gm_row *row, int result)
{
	struct gm_event event = event_of(call, row, result);

	if (result != GM_CUDA_SUCCESS)
		return;
	event.key = read_out(call);
	event.space = GM_SPACE_RESERVATION;
	event.device = (int16_t)context_device();
	gm_track_reserve(&event);
}

static void end_address_free(struct gm_call *call, const struct gm_row *row, int result)
{
	struct gm_event event = event_of(call, row, result);

	event.space = GM_SPACE_RESERVATION;
	event.stack = take_stack(call, GM_SHALLOW_FRAMES, &event.caller_module);
	gm_track_unreserve(&event);
}

static void end_map(struct gm_call *call, const struct gm_row *row, int result)
{
	struct gm_event event = event_of(call, row, result);

	event.space = GM_SPACE_MAPPING;
	event.device = (int16_t)context_device();
	if (result == GM_CUDA_SUCCESS)
		gm_track_map(&event, call->handle);
}

static void end_unmap(struct gm_call *call, const struct gm_row *row, int result)
{
	struct gm_event event = event_of(call, row, result);

	event.space = GM_SPACE_MAPPING;
	if (result == GM_CUDA_SUCCESS) {
		gm_track_unmap(&event);
		return;
	}
	event.stack = take_stack(call, GM_SHALLOW_FRAMES, &event.caller_module);
	gm_track_free_end((struct gm_ticket){.record = GM_NONE}, &event);
}

static void end_retain(struct gm_call *call, const struct gm_row *row, int result)
{
	struct gm_event event = event_of(call, row, result);

	if (result != GM_CUDA_SUCCESS)
		return;
	event.key = read_out(call);
	gm_track_retain(&event, call->key);
}

static void end_release(struct gm_call *call, const struct gm_row *row, int result)
{
	struct gm_event event = event_of(call, row, result);

	event.space = GM_SPACE_HANDLE;
	event.stack = take_stack(call, GM_SHALLOW_FRAMES, &event.caller_module);
	gm_track_release(&event);
}

/* ---- contexts ---- */

static bool on_device(const struct gm_alloc_record *record, const void *device)
{
	return record->level == GM_LEVEL_DRIVER && record->device == *(const int *)device &&
	       record->space != GM_SPACE_RESERVATION && record->space != GM_SPACE_HANDLE;
}

static void begin_reset(struct gm_call *call, const struct gm_row *row)
{
	(void)row;
	if (call->device < 0)
		call->device = gm_ask_current_device();
}

static void end_reset(struct gm_call *call, const struct gm_row *row, int result)
{
	(void)row;
	if (result == GM_CUDA_SUCCESS && call->device >= 0)
		gm_track_implicit_free(GM_IMPLICIT_DEVICE_RESET, on_device, &call->device);
}

static void end_context(struct gm_call *call, const struct gm_row *row, int result)
{
	(void)row;
	if (result == GM_CUDA_SUCCESS)
		gm_ask_describe_device(call->device);
}

/* ---- the table ---- */

static const struct {
	void (*begin)(struct gm_call *call, const struct gm_row *row);
	void (*end)(struct gm_call *call, const struct gm_row *row, int result);
} roles[GM_ROLES] = {
	[GM_ROLE_ALLOC] = {NULL, end_alloc},
	[GM_ROLE_FREE] = {begin_free, end_free},
	[GM_ROLE_REGISTER] = {NULL, end_register},
	[GM_ROLE_EXPORT] = {NULL, end_export},
	[GM_ROLE_VMM_RESERVE] = {NULL, end_reserve},
	[GM_ROLE_VMM_ADDRESS_FREE] = {NULL, end_address_free},
	[GM_ROLE_VMM_MAP] = {NULL, end_map},
	[GM_ROLE_VMM_UNMAP] = {NULL, end_unmap},
	[GM_ROLE_VMM_RETAIN] = {NULL, end_retain},
	[GM_ROLE_VMM_RELEASE] = {NULL, end_release},
	[GM_ROLE_CTX_CREATE] = {NULL, end_context},
	[GM_ROLE_CTX_RETAIN] = {NULL, end_context},
	[GM_ROLE_DEVICE_RESET] = {begin_reset, end_reset},
};

void gm_role_begin(struct gm_call *call, const struct gm_row *row)
{
	if (roles[row->role].begin)
		roles[row->role].begin(call, row);
}

void gm_role_end(struct gm_call *call, const struct gm_row *row, int result)
{
	if (roles[row->role].end)
		roles[row->role].end(call, row, result);
}

/*
 * Decides which allocation calls are answered out of memory (refuse.h). The decision is made where
 * the program calls; the answer is given by the driver's wrapper inside, so that cudart sets its
 * own error state and out-pointer as it would.
 */
#include "recorder/calls/refuse.h"
#include "account/kinds.h"
#include "recorder/calls/call.h"
#include "recorder/query/query.h"
#include "recorder/state/settings.h"
#include "track/devices.h"

#include <string.h>

static uint64_t calls; /* outermost allocation calls so far (atomic) */

static __thread struct {
	uint8_t kind;	  /* kind of the outermost call that is to fail; GM_KIND_NONE: none is */
	uint8_t answered; /* the failure was returned */
} thread __attribute__((tls_model("initial-exec")));

static bool allocates(const struct gm_row *row)
{
	return row->role == GM_ROLE_ALLOC && gm_kind_owned(row->kind);
}

/* A number in [0, 1) that depends on the seed and the call's number alone (splitmix64). */
static double share_of(uint64_t number)
{
	uint64_t x = gm_settings.fail_seed + number * 0x9e3779b97f4a7c15ull;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return (double)((x ^ (x >> 31)) >> 11) * 0x1p-53;
}

static bool chosen(void)
{
	uint64_t number;

	if (!gm_settings.fail_from && gm_settings.fail_share <= 0)
		return false;
	number = __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
	if (gm_settings.fail_from)
		return number >= gm_settings.fail_from && number <= gm_settings.fail_to;
	return share_of(number) < gm_settings.fail_share;
}

/* ---- capacity ---- */

static int device_of(const struct gm_call *call)
{
	const CUmemLocation *location = call->location;
	int device;

	if (location && location->type == GM_MEM_LOCATION_DEVICE)
		return location->id;
	device = gm_query_device_count() == 1 ? 0 : gm_query_current_device();
	return device < 0 ? 0 : device;
}

static bool on_host(const struct gm_call *call, const struct gm_row *row)
{
	const CUmemLocation *location = call->location;

	return gm_kind_on_host(row->kind) ||
	       (row->kind == GM_KIND_VMM && location && location->type > GM_MEM_LOCATION_DEVICE);
}

static bool over_capacity(const struct gm_call *call, const struct gm_row *row)
{
	uint64_t bytes = call->rows ? call->bytes * call->rows : call->bytes, held;

	if (gm_settings.capacity_bytes == UINT64_MAX || on_host(call, row))
		return false;
	held = gm_track_held_bytes(device_of(call));
	return held >= gm_settings.capacity_bytes || bytes > gm_settings.capacity_bytes - held;
}

void gm_refuse_mem_info(int device, uint64_t *free_bytes, uint64_t *total_bytes)
{
	uint64_t capacity = gm_settings.capacity_bytes, held;

	if (capacity >= *total_bytes)
		return;
	held = gm_track_held_bytes(device);
	*total_bytes = capacity;
	if (held >= capacity)
		*free_bytes = 0;
	else if (*free_bytes > capacity - held)
		*free_bytes = capacity - held;
}

static uint64_t read_bytes(const void *from, bool narrow)
{
	uint64_t wide = 0;

	memcpy(&wide, from, narrow ? sizeof(uint32_t) : sizeof(wide));
	return wide;
}

void gm_refuse_end_mem_info(struct gm_call *call, const struct gm_row *row, int result)
{
	size_t width = call->narrow ? sizeof(uint32_t) : sizeof(uint64_t);
	uint64_t free_bytes, total_bytes;

	(void)row;
	if (result != GM_CUDA_SUCCESS || gm_settings.capacity_bytes == UINT64_MAX ||
	    !call->free_out || !call->total_out)
		return;
	free_bytes = read_bytes(call->free_out, call->narrow);
	total_bytes = read_bytes(call->total_out, call->narrow);
	gm_refuse_mem_info(device_of(call), &free_bytes, &total_bytes);
	memcpy(call->free_out, &free_bytes, width);
	memcpy(call->total_out, &total_bytes, width);
}

/* ---- around the call ---- */

void gm_refuse_begin(struct gm_call *call, const struct gm_row *row)
{
	thread.kind = GM_KIND_NONE;
	thread.answered = 0;
	gm_thread.refusing = 0;
	if (!allocates(row) || !(call->bytes && call->out))
		return;
	if (chosen() || over_capacity(call, row)) {
		thread.kind = row->kind;
		gm_thread.refusing = 1;
	}
}

void gm_refuse_end(struct gm_call *call)
{
	call->injected = thread.answered;
	gm_thread.refusing = 0;
	thread.kind = GM_KIND_NONE;
	thread.answered = 0;
}

bool gm_refuse_answers(struct gm_call *call)
{
	const struct gm_row *row = &gm_rows[call->function];
	uint64_t nothing = 0;

	/* Other calls that are made inside, as for a context, are not to fail. */
	if (!allocates(row) || row->kind != thread.kind)
		return false;
	if (call->out)
		memcpy(call->out, &nothing, call->narrow ? sizeof(uint32_t) : sizeof(nothing));
	thread.answered = 1;
	return true;
}

/*
 * Contexts: which there are, what they cost, and what goes with them. Destroying a context, the last
 * release of a primary one and a reset free what was allocated in it. Stream-ordered memory and pools
 * outlive contexts (measured on an H100), handles of virtual memory and reserved addresses belong to none.
 */
#include "track/state.h"

GM_HOT uint32_t gm_context_changes; /* contexts that came or went (atomic) */
GM_HOT uint32_t gm_sole_context;

static bool some_untold; /* there may be contexts that no call tells of (atomic) */

/* Contexts came or went. Under the lock: of two changes at a time the later one counts. */
static void note_change(void)
{
	uint32_t number, count = gm_file->tables[GM_TABLE_CONTEXTS].count, live = 0, sole = 0;

	for (number = 0; number < count; number++) {
		struct gm_context_record *context = gm_store_record(GM_TABLE_CONTEXTS, number);

		if (context->state != GM_STATE_LIVE)
			continue;
		live++;
		if (context->primary)
			sole = number + 1;
	}
	__atomic_store_n(&gm_sole_context, live == 1 ? sole : 0, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&some_untold, __ATOMIC_SEQ_CST)) /* perhaps said meanwhile */
		__atomic_store_n(&gm_sole_context, 0, __ATOMIC_RELEASE);
	__atomic_fetch_add(&gm_context_changes, 1, __ATOMIC_RELEASE);
}

/* What was untold stays so: it may have been said before there was a file. */
void gm_contexts_reset(void)
{
	__atomic_store_n(&gm_sole_context, 0, __ATOMIC_RELEASE);
	__atomic_fetch_add(&gm_context_changes, 1, __ATOMIC_RELEASE);
}

void gm_track_context_untold(void)
{
	__atomic_store_n(&some_untold, true, __ATOMIC_SEQ_CST);
	__atomic_store_n(&gm_sole_context, 0, __ATOMIC_SEQ_CST);
}

static struct gm_context_record *live_context(uint64_t handle, uint32_t *number)
{
	uint32_t count = __atomic_load_n(&gm_file->tables[GM_TABLE_CONTEXTS].count, __ATOMIC_ACQUIRE);

	for (*number = 0; *number < count; ++*number) {
		struct gm_context_record *context = gm_store_record(GM_TABLE_CONTEXTS, *number);

		if (context->handle == handle &&
		    __atomic_load_n(&context->state, __ATOMIC_ACQUIRE) == GM_STATE_LIVE)
			return context;
	}
	*number = GM_NONE;
	return NULL;
}

static uint32_t primary_of(int device)
{
	uint32_t number, count = gm_file->tables[GM_TABLE_CONTEXTS].count;

	for (number = 0; number < count; number++) {
		struct gm_context_record *context = gm_store_record(GM_TABLE_CONTEXTS, number);

		if (context->state == GM_STATE_LIVE && context->primary && context->device == device)
			return number;
	}
	return GM_NONE;
}

uint32_t gm_track_context(uint64_t handle)
{
	struct gm_context_record *context;
	uint32_t number = GM_NONE, primary;

	if (!gm_file || !handle)
		return GM_NONE;
	context = live_context(handle, &number);
	primary = context && context->green ? primary_of(context->device) : GM_NONE;
	return primary == GM_NONE ? number : primary;
}

int gm_track_context_device(uint32_t context)
{
	const struct gm_context_record *record =
		gm_file && context ? gm_store_record(GM_TABLE_CONTEXTS, context - 1) : NULL;

	return record ? record->device : -1;
}

/* The device's record in use, for the first context's cost and stack. */
static void note_first(const struct gm_context_record *context)
{
	struct gm_device_record *device = context->device < 0 ? NULL :
		gm_store_record(GM_TABLE_DEVICES, (uint32_t)context->device);

	if (!device)
		return;
	if (device->context_bytes == GM_NO_BYTES)
		device->context_bytes = context->bytes;
	if (device->context_stack == GM_NONE)
		device->context_stack = context->stack;
}

uint32_t gm_track_context_made(uint64_t handle, int device, bool primary, bool green, uint64_t bytes,
			       uint32_t stack)
{
	struct gm_context_record *context;
	struct gm_event event = {.key = handle, .bytes = bytes == GM_NO_BYTES ? 0 : bytes,
				 .stack = stack, .function = GM_NONE, .device = (int16_t)device};
	uint32_t number;

	if (!gm_file || !handle)
		return GM_NONE;
	gm_track_enter();
	context = live_context(handle, &number);
	if (context) {
		context->references += primary;
	} else {
		context = gm_store_append(GM_TABLE_CONTEXTS, 1, &number);
		if (context) {
			context->device = (int16_t)device;
			context->primary = primary;
			context->green = green;
			context->handle = handle;
			context->time_ns = gm_track.now_ns;
			context->bytes = bytes;
			context->stack = stack;
			context->references = 1;
			note_first(context);
			__atomic_store_n(&context->state, GM_STATE_LIVE, __ATOMIC_RELEASE);
			gm_store_publish(GM_TABLE_CONTEXTS);
			gm_history(GM_OP_CONTEXT, &event, 0, GM_NONE);
			note_change();
		} else {
			gm_track_context_untold(); /* by the table, which is full */
		}
	}
	gm_track_leave();
	return number;
}

/* ---- the end of one ---- */

struct leaving {
	uint32_t context; /* GM_NONE: memory of the device whose context is not known */
	int device;
};

static bool goes_with_it(const struct gm_alloc_record *record, const void *data)
{
	const struct leaving *leaving = data;

	if (record->level != GM_LEVEL_DRIVER || record->context != leaving->context)
		return false;
	if (leaving->context == GM_NONE && record->device != leaving->device)
		return false;
	return record->kind != GM_KIND_ASYNC && record->space != GM_SPACE_RESERVATION &&
	       record->space != GM_SPACE_HANDLE && record->space != GM_SPACE_MAPPING;
}

static void end_context(uint32_t number, enum gm_implicit_cause cause)
{
	struct gm_context_record *context = gm_store_record(GM_TABLE_CONTEXTS, number);
	struct leaving leaving = {.context = number, .device = GM_HOST};

	gm_track_implicit_free(cause, goes_with_it, &leaving);
	gm_track_enter();
	__atomic_store_n(&context->state, GM_STATE_EMPTY, __ATOMIC_RELEASE);
	context->references = 0;
	note_change();
	gm_track_leave();
}

static bool has_context(int device)
{
	uint32_t number, count = gm_file->tables[GM_TABLE_CONTEXTS].count;

	for (number = 0; number < count; number++) {
		const struct gm_context_record *context = gm_store_record(GM_TABLE_CONTEXTS, number);

		if (context->state == GM_STATE_LIVE && !context->green && context->device == device)
			return true;
	}
	return false;
}

/* Of several contexts it is not known what calls took in which: that is gone with the last. */
static void end_costs(int device)
{
	if (device < 0)
		return;
	gm_track_enter();
	if (!has_context(device))
		gm_costs_gone(device);
	gm_track_leave();
}

void gm_track_context_gone(uint64_t handle, int device, enum gm_implicit_cause cause)
{
	struct leaving leaving = {.context = GM_NONE, .device = device};
	uint32_t number, count;

	if (!gm_file)
		return;
	if (handle) {
		const struct gm_context_record *context = live_context(handle, &number);

		if (context) {
			end_context(number, cause);
			end_costs(context->device);
		}
		return;
	}
	count = gm_file->tables[GM_TABLE_CONTEXTS].count;
	for (number = 0; number < count; number++) {
		struct gm_context_record *context = gm_store_record(GM_TABLE_CONTEXTS, number);

		if (context->state == GM_STATE_LIVE && context->primary && context->device == device)
			end_context(number, cause);
	}
	if (device >= 0)
		gm_track_implicit_free(cause, goes_with_it, &leaving);
	end_costs(device);
}

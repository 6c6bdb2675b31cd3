/*
 * Contexts. Destroying a context, the last release of a primary one and a reset free what was
 * allocated in it. Stream-ordered memory and pools outlive contexts (measured on an H100); handles
 * of virtual memory and reserved addresses belong to none.
 */
#include "track/contexts.h"
#include "track/allocs.h"
#include "track/costs.h"
#include "track/event_log.h"
#include "track/update.h"

GM_HOT uint32_t gm_context_changes;
GM_HOT uint32_t gm_sole_context;

static bool some_untold; /* there may be contexts that no recorded call makes (atomic) */

/*
 * Contexts came or went. Called under the lock, so that of two changes at a time the later one
 * counts.
 */
static void count_change(void)
{
	uint32_t index, count = gm_file->tables[GM_TABLE_CONTEXTS].count, live = 0, sole = 0;

	for (index = 0; index < count; index++) {
		struct gm_context_record *context = gm_store_record(GM_TABLE_CONTEXTS, index);

		if (context->state != GM_STATE_LIVE)
			continue;
		live++;
		if (context->primary)
			sole = index + 1;
	}
	__atomic_store_n(&gm_sole_context, live == 1 ? sole : 0, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&some_untold,
			    __ATOMIC_SEQ_CST)) /* another thread may just have set it */
		__atomic_store_n(&gm_sole_context, 0, __ATOMIC_RELEASE);
	__atomic_fetch_add(&gm_context_changes, 1, __ATOMIC_RELEASE);
}

/* `some_untold` is not reset: it may have been set before there was a file. */
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

/*
 * Returns the live context with a handle and stores its index; NULL and GM_NONE if there is none.
 */
static struct gm_context_record *live_context(uint64_t handle, uint32_t *index)
{
	uint32_t count =
		__atomic_load_n(&gm_file->tables[GM_TABLE_CONTEXTS].count, __ATOMIC_ACQUIRE);

	for (*index = 0; *index < count; ++*index) {
		struct gm_context_record *context = gm_store_record(GM_TABLE_CONTEXTS, *index);

		if (context->handle == handle &&
		    __atomic_load_n(&context->state, __ATOMIC_ACQUIRE) == GM_STATE_LIVE)
			return context;
	}
	*index = GM_NONE;
	return NULL;
}

static uint32_t primary_of(int device)
{
	uint32_t index, count = gm_file->tables[GM_TABLE_CONTEXTS].count;

	for (index = 0; index < count; index++) {
		struct gm_context_record *context = gm_store_record(GM_TABLE_CONTEXTS, index);

		if (context->state == GM_STATE_LIVE && context->primary &&
		    context->device == device)
			return index;
	}
	return GM_NONE;
}

uint32_t gm_track_context(uint64_t handle)
{
	struct gm_context_record *context;
	uint32_t index = GM_NONE, primary;

	if (!gm_file || !handle)
		return GM_NONE;
	context = live_context(handle, &index);
	primary = context && context->green ? primary_of(context->device) : GM_NONE;
	return primary == GM_NONE ? index : primary;
}

int gm_track_context_device(uint32_t context)
{
	const struct gm_context_record *record =
		gm_file && context ? gm_store_record(GM_TABLE_CONTEXTS, context - 1) : NULL;

	return record ? record->device : -1;
}

/* Stores the cost and the stack of the device's first context in the device's record. */
static void set_first(const struct gm_context_record *context)
{
	struct gm_device_record *device =
		context->device < 0 ? NULL
				    : gm_store_record(GM_TABLE_DEVICES, (uint32_t)context->device);

	if (!device)
		return;
	if (device->context_bytes == GM_NO_BYTES)
		device->context_bytes = context->bytes;
	if (device->context_stack == GM_NONE)
		device->context_stack = context->stack;
}

uint32_t gm_track_context_made(uint64_t handle, int device, bool primary, bool green,
			       uint64_t bytes, uint32_t stack)
{
	struct gm_context_record *context;
	struct gm_event event = {.key = handle,
				 .bytes = bytes == GM_NO_BYTES ? 0 : bytes,
				 .stack = stack,
				 .function = GM_NONE,
				 .device = (int16_t)device};
	uint32_t index;

	if (!gm_file || !handle)
		return GM_NONE;
	gm_update_begin();
	context = live_context(handle, &index);
	if (context) {
		context->references += primary;
	} else {
		context = gm_store_append(GM_TABLE_CONTEXTS, 1, &index);
		if (context) {
			context->device = (int16_t)device;
			context->primary = primary;
			context->green = green;
			context->handle = handle;
			context->time_ns = gm_track.now_ns;
			context->bytes = bytes;
			context->stack = stack;
			context->references = 1;
			set_first(context);
			__atomic_store_n(&context->state, GM_STATE_LIVE, __ATOMIC_RELEASE);
			gm_store_publish(GM_TABLE_CONTEXTS);
			gm_log_event(GM_OP_CONTEXT, &event, 0, GM_NONE);
			count_change();
		} else {
			gm_track_context_untold(); /* the table is full */
		}
	}
	gm_update_end();
	return index;
}

/* ---- the end of a context ---- */

struct leaving {
	uint32_t context; /* GM_NONE: memory of the device whose context is not known */
	int device;
};

/* Memory allocated in a green context is its device's primary context's, which may not be known. */
static bool is_green(uint32_t index)
{
	const struct gm_context_record *context =
		index == GM_NONE ? NULL : gm_store_record(GM_TABLE_CONTEXTS, index);

	return context && context->green;
}

/* Returns whether an allocation ends with the context. */
static bool ends_with(const struct gm_alloc_record *record, const void *data)
{
	const struct leaving *leaving = data;
	bool of_primary = leaving->context == GM_NONE && is_green(record->context);

	if (record->level != GM_LEVEL_DRIVER ||
	    (record->context != leaving->context && !of_primary))
		return false;
	if (leaving->context == GM_NONE && record->device != leaving->device)
		return false;
	return record->kind != GM_KIND_ASYNC && record->space != GM_SPACE_RESERVATION &&
	       record->space != GM_SPACE_HANDLE && record->space != GM_SPACE_MAPPING;
}

static void end_context(uint32_t index, enum gm_implicit_cause cause, uint32_t stack)
{
	struct gm_context_record *context = gm_store_record(GM_TABLE_CONTEXTS, index);
	struct leaving leaving = {.context = index, .device = GM_HOST};

	if (!context->green)
		gm_track_implicit_free(cause, stack, ends_with, &leaving);
	gm_update_begin();
	__atomic_store_n(&context->state, GM_STATE_EMPTY, __ATOMIC_RELEASE);
	context->references = 0;
	count_change();
	gm_update_end();
}

static bool has_context(int device)
{
	uint32_t index, count = gm_file->tables[GM_TABLE_CONTEXTS].count;

	for (index = 0; index < count; index++) {
		const struct gm_context_record *context = gm_store_record(GM_TABLE_CONTEXTS, index);

		if (context->state == GM_STATE_LIVE && !context->green && context->device == device)
			return true;
	}
	return false;
}

/*
 * Ends all costs of a device with its last context, for the costs of calls are not known for each
 * context.
 */
static void end_costs(int device)
{
	if (device < 0)
		return;
	gm_update_begin();
	if (!has_context(device))
		gm_costs_end(device);
	gm_update_end();
}

void gm_track_context_gone(uint64_t handle, int device, enum gm_implicit_cause cause,
			   uint32_t stack)
{
	struct leaving leaving = {.context = GM_NONE, .device = device};
	uint32_t index, count;

	if (!gm_file)
		return;
	if (handle) {
		const struct gm_context_record *context = live_context(handle, &index);

		if (context) {
			end_context(index, cause, stack);
			if (!context->green) /* its device keeps the primary one */
				end_costs(context->device);
		}
		return;
	}
	count = gm_file->tables[GM_TABLE_CONTEXTS].count;
	for (index = 0; index < count; index++) {
		struct gm_context_record *context = gm_store_record(GM_TABLE_CONTEXTS, index);

		if (context->green && context->device == device)
			context->bytes = 0; /* the process kept it as long as the primary context */
		if (context->state == GM_STATE_LIVE && context->primary &&
		    context->device == device)
			end_context(index, cause, stack);
	}
	if (device >= 0)
		gm_track_implicit_free(cause, stack, ends_with, &leaving);
	end_costs(device);
}

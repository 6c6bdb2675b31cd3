/*
 * Following saved frame pointers. The frames are right only if all code was built with frame
 * pointers, but no read faults: beyond the thread's own stack words are read by gm_safe_read.
 */
#include "stack/frame_pointers.h"

#include "stack/safe_read.h"
#include "stack/thread_stack.h"

#include <string.h>

#define LOWEST_CODE   4096u
#define LARGEST_FRAME (8u << 20)

/* The two words that a frame pointer points at. */
struct frame_record {
	uintptr_t caller, pc;
};

static bool read_record(struct frame_record *record, uintptr_t at)
{
	uintptr_t end = gm_thread_stack_end(at);

	if (!end || end - at < sizeof(*record))
		return gm_safe_read(record, at, sizeof(*record));
	memcpy(record, (const void *)at, sizeof(*record));
	return true;
}

static bool init_frame_pointers(void)
{
	struct frame_record record;

	return gm_safe_read(&record, (uintptr_t)__builtin_frame_address(0), sizeof(record));
}

static void walk_frame_pointers(struct gm_walk *walk)
{
	uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
	struct frame_record record;

	if (!gm_thread_stack_end(frame))
		gm_thread_stack_learn(frame);
	walk->frames = 0;
	while (walk->frames < walk->max && read_record(&record, frame) &&
	       record.pc >= LOWEST_CODE) {
		walk->pc[walk->frames++] = record.pc;
		if (record.pc - walk->stop_start < walk->stop_bytes || record.caller <= frame ||
		    record.caller - frame > LARGEST_FRAME || record.caller % sizeof(uintptr_t))
			break;
		frame = record.caller;
	}
}

const struct gm_unwinder gm_unwinder_frame_pointers = {"frame pointers", init_frame_pointers,
						       walk_frame_pointers};

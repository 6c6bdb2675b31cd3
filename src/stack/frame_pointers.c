/*
 * The last resort of native.h: following saved frame pointers. Right only where everything was
 * built with them, but it must never fault, so each page of the stack is tried with gm_safe_read
 * before it is read.
 */
#include "stack/native.h"

#include "stack/safe_read.h"

#define PAGE	      4096u
#define LARGEST_FRAME (8u << 20)

static bool readable(uintptr_t address)
{
	uintptr_t word;

	return gm_safe_read(&word, address, sizeof(word));
}

static bool init_frame_pointers(void)
{
	return readable((uintptr_t)__builtin_frame_address(0));
}

static void walk_frame_pointers(struct gm_walk *walk)
{
	uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
	uintptr_t checked = frame / PAGE; /* this function's own page is there */
	unsigned frames = 0;

	while (frames < walk->max) {
		uintptr_t last = (frame + 2 * sizeof(uintptr_t) - 1) / PAGE, next, pc;

		if (last != checked && !readable(last * PAGE))
			break;
		if (frame / PAGE != checked && frame / PAGE != last && !readable(frame))
			break;
		checked = last;
		next = ((uintptr_t *)frame)[0];
		pc = ((uintptr_t *)frame)[1];
		if (pc < PAGE)
			break;
		walk->pc[frames++] = pc;
		if (pc - walk->stop_start < walk->stop_bytes)
			break;
		if (next <= frame || next - frame > LARGEST_FRAME || next % sizeof(uintptr_t))
			break;
		frame = next;
	}
	walk->frames = frames;
}

const struct gm_unwinder gm_unwinder_frame_pointers = {"frame pointers", init_frame_pointers,
						       walk_frame_pointers};

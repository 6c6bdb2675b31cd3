/*
 * Finding the caller (caller.h). Between a callback and the program lie frames of this library, of
 * libcupti, of libcuda and, where it is a library of its own, of cudart. A static cudart counts as
 * part of its program, as it does for the wrappers.
 */
#include "cupti/caller.h"
#include "cupti/library.h"
#include "recorder/state/settings.h"
#include "stack/native.h"
#include "stack/stack.h"

#include <stdbool.h>

#define MOST_FRAMES 32u	  /* stack.c looks for the caller in as many */
#define SLOTS	    2048u /* a power of two */

/*
 * Return addresses seen, each as address * 2, plus 1 if it is CUDA's (atomic). The table is never
 * emptied: CUDA's libraries stay loaded, so that an address of theirs stays CUDA's, and where
 * another library was unloaded no library of CUDA's takes its place.
 */
static uintptr_t seen[SLOTS];
static unsigned expected = 8; /* frames before the caller at the last call (atomic) */

static bool find_owner(uintptr_t pc)
{
	static const char *const libraries[] = {"libcupti", "libcuda", "libcudart"};
	struct gm_object object;
	unsigned i;

	if (gm_native_is_own(pc))
		return true;
	if (!gm_object_at(pc, &object))
		return false;
	for (i = 0; i < sizeof(libraries) / sizeof(*libraries); i++)
		if (gm_cupti_is_library(&object, libraries[i]))
			return true;
	return false;
}

static bool is_cuda(uintptr_t pc)
{
	uintptr_t *slot = &seen[(pc * 0x9e3779b97f4a7c15ull >> 40) % SLOTS];
	uintptr_t known = __atomic_load_n(slot, __ATOMIC_RELAXED);

	if (known >> 1 != pc) {
		known = pc << 1 | find_owner(pc);
		__atomic_store_n(slot, known, __ATOMIC_RELAXED);
	}
	return known & 1;
}

static unsigned count_cuda(const uintptr_t *pc, unsigned frames)
{
	unsigned i;

	for (i = 0; i < frames && is_cuda(pc[i]); i++)
		;
	return i;
}

uintptr_t gm_cupti_caller(void)
{
	unsigned guess = __atomic_load_n(&expected, __ATOMIC_RELAXED), skipped;
	uintptr_t pc[MOST_FRAMES];
	struct gm_walk walk = {.pc = pc};

	if (gm_settings.stacks == GM_STACKS_OFF || gm_settings.stacks == GM_STACKS_PYTHON)
		return 0;
	walk.max = guess + 1;
	gm_native_walk(&walk);
	skipped = count_cuda(pc, walk.frames);
	if (skipped == walk.frames && walk.frames > guess) {
		walk.max = MOST_FRAMES;
		gm_native_walk(&walk);
		skipped = count_cuda(pc, walk.frames);
	}
	if (skipped == walk.frames)
		return 0;
	if (skipped != guess)
		__atomic_store_n(&expected, skipped, __ATOMIC_RELAXED);
	return pc[skipped];
}

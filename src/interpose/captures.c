/*
 * Counting captures (captures.h): each is counted before its beginning is asked for, and no longer once
 * CUDA says that it ended. What ends otherwise, with its stream or context or with work that was not
 * joined, stays counted: streams are then asked for nothing, which is no harm. Whoever allocates on a
 * stream that is being captured comes after its beginning, in the driver if not before, and so sees the
 * count.
 */
#include "interpose/captures.h"
#include "store/lock.h"

#include <string.h>

/* What the end of a capture answers when it took place and the graph is none. */
#define INVALIDATED 901

GM_HOT uint32_t gm_captures;

static void end_one(void)
{
	uint32_t count = __atomic_load_n(&gm_captures, __ATOMIC_RELAXED);

	while (count && !__atomic_compare_exchange_n(&gm_captures, &count, count - 1, true,
						     __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
}

void gm_capture_enters(unsigned role)
{
	if (role == GM_ROLE_CAPTURE_BEGIN)
		__atomic_fetch_add(&gm_captures, 1, __ATOMIC_SEQ_CST);
}

void gm_capture_leaves(unsigned role, int result)
{
	bool ended = result == GM_CUDA_SUCCESS || result == INVALIDATED;

	if (role == GM_ROLE_CAPTURE_BEGIN ? result != GM_CUDA_SUCCESS : ended)
		end_one();
}

void gm_capture_name(const char *name)
{
	static const char begin[] = "cuStreamBegin";
	static uint32_t noted;

	if (!strncmp(name, begin, sizeof(begin) - 1) &&
	    !__atomic_exchange_n(&noted, 1, __ATOMIC_RELAXED))
		gm_capture_enters(GM_ROLE_CAPTURE_BEGIN);
}

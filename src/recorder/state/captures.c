/*
 * Counting captures (captures.h). Each is counted before its beginning is asked for, until CUDA
 * says that it ended. A capture that ends otherwise, with its stream or context or with work that
 * was not joined, stays counted: streams are then queried in vain, which does no harm. A thread
 * that allocates on a stream that is being captured comes after the beginning of that capture, in
 * the driver if not before, and so it sees the count.
 */
#include "recorder/state/captures.h"
#include "store/lock.h"

GM_HOT uint32_t gm_captures;

void gm_captures_may_be_unseen(void)
{
	__atomic_fetch_or(&gm_captures, GM_CAPTURES_UNSEEN, __ATOMIC_RELAXED);
}

static void end_one(void)
{
	uint32_t count = __atomic_load_n(&gm_captures, __ATOMIC_RELAXED);

	while (count & ~GM_CAPTURES_UNSEEN &&
	       !__atomic_compare_exchange_n(&gm_captures, &count, count - 1, true,
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
	if (role == GM_ROLE_CAPTURE_BEGIN ? result != GM_CUDA_SUCCESS : gm_capture_is_over(result))
		end_one();
}

/*
 * Driver calls under way, from the callback at their begin to the one at their end
 * (driver_calls.h). Each thread inside CUDA has a block for them, which it acquires when its
 * outermost call begins and releases when that call ends, so that threads that come and go leave
 * nothing behind.
 */
#include "cupti/driver_calls.h"
#include "cupti/caller.h"
#include "cupti/decode.h"
#include "recorder/calls/call.h"
#include "recorder/calls/pass.h"
#include "recorder/state/fork_page.h"
#include "recorder/calls/roles.h"
#include "recorder/calls/slow_path.h"
#include "recorder/state/thread.h"
#include "track/contexts.h"
#include "track/recording.h"

#include <errno.h>
#include <sys/mman.h>
#include <time.h>

#define MOST_NESTED	8     /* driver calls inside each other */
#define MOST_THREADS	1024  /* threads inside CUDA at one time */
#define UNCERTAIN_BYTES 4096u /* the callbacks of one call may lie so far apart on the stack */
#define DRAIN_MS	200

/*
 * The outermost call comes last and those inside it lie lower, as they would on a stack, because
 * recorder/calls/slow_path.c recognises nesting by addresses.
 */
struct block {
	struct gm_call calls[MOST_NESTED];
	uintptr_t frames[MOST_NESTED]; /* of the callbacks at their begin, outermost first */
	uint32_t depth;
	uint32_t used; /* a thread has it (atomic) */
};

/* The purpose of CUPTI's callbacks. */
enum listening {
	SOLE_SOURCE,	/* every call of the table */
	BESIDE_WRAPPERS, /* calls that no wrapper sees */
	NOTHING
};

static struct block *blocks;
static uint32_t listening; /* enum listening (atomic) */
static uint32_t exiting; /* exit handlers run, and CUDA tears itself down (atomic) */

static __thread struct {
	struct block *mine; /* NULL: no call under way */
	uint32_t last;	    /* number of the block that it had last, which is likely to be free */
} thread __attribute__((tls_model("initial-exec")));

bool gm_cupti_calls_start(void)
{
	void *memory;

	if (blocks)
		return true;
	memory = mmap(NULL, MOST_THREADS * sizeof(*blocks), PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		return false;
	blocks = memory;
	return true;
}

const char *gm_cupti_wanted(unsigned function)
{
	const struct gm_row *row = &gm_rows[function];

	return row->layer == GM_LAYER_DRIVER && gm_role_table[row->role].source == GM_SOURCE_CUPTI ?
		       row->name : NULL;
}

/* ---- blocks ---- */

static struct block *acquire_block(void)
{
	uint32_t i;

	for (i = 0; i < MOST_THREADS; i++) {
		struct block *block = &blocks[(thread.last + i) % MOST_THREADS];

		if (__atomic_exchange_n(&block->used, 1, __ATOMIC_SEQ_CST))
			continue;
		thread.last = (uint32_t)(block - blocks);
		thread.mine = block;
		block->depth = 0;
		return block;
	}
	return NULL;
}

static void release_block(struct block *block)
{
	thread.mine = NULL;
	__atomic_store_n(&block->used, 0, __ATOMIC_RELEASE);
}

static struct gm_call *at_depth(struct block *block, uint32_t depth)
{
	return &block->calls[MOST_NESTED - depth];
}

/*
 * Drops calls that an exception or longjmp ended, so that their end was never reported. Their
 * callback's frame lay exactly where this one does, or clearly below it, where no call that
 * contains this one can be under way.
 */
static void drop_stale(struct block *block, uintptr_t frame)
{
	while (block->depth && (block->frames[block->depth - 1] == frame ||
				block->frames[block->depth - 1] + UNCERTAIN_BYTES <= frame))
		block->depth--;
	if (block->depth == MOST_NESTED) /* calls do not nest so deep: all are stale */
		block->depth = 0;
}

static struct gm_call *push(uintptr_t frame)
{
	struct block *block = thread.mine ? thread.mine : acquire_block();

	if (!block)
		return NULL;
	drop_stale(block, frame);
	block->frames[block->depth++] = frame;
	return at_depth(block, block->depth);
}

/* Drops the calls inside `call`; false if `call` is not under way on this thread. */
static bool drop_to(struct block *block, const struct gm_call *call)
{
	uint32_t depth;

	for (depth = block->depth; depth && at_depth(block, depth) != call; depth--)
		;
	if (depth)
		block->depth = depth;
	return depth != 0;
}

/* Ends the innermost call of the block. */
static void pop(struct block *block)
{
	if (--block->depth == 0)
		release_block(block);
}

/* ---- beside the wrappers ---- */

/*
 * True for a call that lies in one that a wrapper is about: the wrapper has marked the thread's
 * outermost call (gm_thread.outermost), on the same stack and above this frame, and records what
 * belongs to it. So each call is recorded once. Calls of the recorder itself, which is then busy,
 * are nobody's.
 */
static bool wrapper_has(uintptr_t frame)
{
	bool by_callback =
		gm_thread.outermost - (uintptr_t)blocks < MOST_THREADS * sizeof(*blocks);

	return gm_thread.busy || (!by_callback && gm_is_nested(frame));
}

void gm_cupti_listen(bool on)
{
	__atomic_store_n(&listening, on ? BESIDE_WRAPPERS : NOTHING, __ATOMIC_SEQ_CST);
}

static bool under_way(void)
{
	uint32_t i;

	for (i = 0; i < MOST_THREADS; i++)
		if (__atomic_load_n(&blocks[i].used, __ATOMIC_SEQ_CST))
			return true;
	return false;
}

bool gm_cupti_calls_drain(void)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	uint32_t before = __atomic_exchange_n(&listening, NOTHING, __ATOMIC_SEQ_CST);
	unsigned waited;

	for (waited = 0; under_way(); waited++) {
		if (waited == DRAIN_MS) {
			__atomic_store_n(&listening, before, __ATOMIC_SEQ_CST);
			return false;
		}
		nanosleep(&pause, NULL);
	}
	return true;
}

/* ---- calls ---- */

void gm_cupti_call_begins(unsigned function, const void *params, uint64_t *correlation)
{
	uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
	uint32_t wanted = __atomic_load_n(&listening, __ATOMIC_RELAXED);
	struct gm_call *call;
	int saved = errno;

	*correlation = 0;
	if (wanted != SOLE_SOURCE && (wanted == NOTHING || wrapper_has(frame)))
		return;
	if (gm_off() && !gm_counts_asleep((enum gm_role)gm_rows[function].role))
		return;
	call = push(frame);
	/* Whoever drains has either seen the block, or is seen here. */
	if (call && __atomic_load_n(&listening, __ATOMIC_SEQ_CST) == NOTHING) {
		pop(thread.mine);
		return;
	}
	*correlation = (uintptr_t)call;
	if (!call) {
		if (gm_owns_file())
			gm_track_passed_call();
		return;
	}
	gm_cupti_decode(function, params, call);
	gm_call_enter(call);
	/* A wait may be long, and who leaves CUPTI would have to wait for its end too. */
	if (wanted != SOLE_SOURCE && !call->outermost && !call->recorded) {
		*correlation = 0;
		pop(thread.mine);
	}
	errno = saved;
}

/*
 * Sets the outer calls' callers too, because their stacks are captured for what happens inside
 * them.
 */
static void set_callers(struct block *block)
{
	uintptr_t caller = gm_cupti_caller();
	uint32_t depth;

	for (depth = 1; depth <= block->depth; depth++)
		if (!at_depth(block, depth)->caller.pc)
			at_depth(block, depth)->caller.pc = caller;
}

void gm_cupti_call_ends(int result, const uint64_t *correlation)
{
	struct gm_call *call = (struct gm_call *)(uintptr_t)*correlation;
	struct block *block = thread.mine;
	int saved = errno;

	if (!call || !block || !drop_to(block, call))
		return;
	if (call->recorded)
		set_callers(block);
	gm_call_leave(call, result);
	pop(block);
	errno = saved;
}

/* ---- contexts ---- */

static void note_exit(void *unused)
{
	(void)unused;
	__atomic_store_n(&exiting, 1, __ATOMIC_RELAXED);
}

extern int __cxa_atexit(void (*function)(void *), void *argument, void *dso);

/* note_exit is registered after libcuda's own exit handlers, so that it runs before them. */
void gm_cupti_context_created(void)
{
	static uint32_t registered;

	if (!__atomic_exchange_n(&registered, 1, __ATOMIC_RELAXED))
		__cxa_atexit(note_exit, NULL, NULL);
}

/*
 * Ignored inside a call of the table, which records the end of a context with its cause, and at
 * exit, where CUDA destroys contexts that the program did not.
 */
void gm_cupti_context_ends(uint64_t context)
{
	int saved = errno;

	if (thread.mine || __atomic_load_n(&exiting, __ATOMIC_RELAXED) || !gm_owns_file() ||
	    !gm_enter_tracker())
		return;
	gm_track_context_gone(context, GM_HOST, GM_IMPLICIT_CONTEXT_DESTROY, GM_NONE);
	gm_leave_tracker();
	errno = saved;
}

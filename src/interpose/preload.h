/*
 * The tracker's life in the process: start at the first event, forks, the end. And the two functions
 * that every wrapper calls around the real one.
 */
#ifndef GM_INTERPOSE_PRELOAD_H
#define GM_INTERPOSE_PRELOAD_H

#include "api/api.h"
#include "interpose/own_page.h"
#include "stack/stack.h"
#include "store/layout.h"
#include <stdbool.h>

struct gm_changes;
struct gm_object;

enum gm_readiness {
	GM_UNREAD, /* the environment was not read, or is being read */
	GM_READY,
	GM_OFF	   /* nothing is to be recorded */
};
extern uint32_t gm_readiness __attribute__((visibility("hidden")));

/* Reads the environment if nobody did. */
bool gm_find_disabled(void);

/* True when nothing is to be recorded: GPUMEMTRACE_DISABLE, a setuid program, no memory for the file. */
static inline bool gm_disabled(void)
{
	uint32_t readiness = __atomic_load_n(&gm_readiness, __ATOMIC_ACQUIRE);

	return readiness == GM_READY ? false : readiness == GM_OFF || gm_find_disabled();
}

/* The same without reading anything: false where that is yet to be done. What a wrapper asks first. */
static inline bool gm_off(void)
{
	return __builtin_expect(__atomic_load_n(&gm_readiness, __ATOMIC_RELAXED) == GM_OFF, 0);
}

bool gm_start(void);

/*
 * True when this process records: opens the file at its first event, and in the child of a fork
 * forgets the parent's and opens its own. May be called from any wrapper; costs one load once started.
 */
static inline bool gm_recording(void)
{
	return __builtin_expect(gm_owns_file(), 1) || gm_start();
}

/* What call.c keeps of a thread. */
struct gm_thread {
	uint64_t works;	     /* stretches of work in the tracker so far */
	uint64_t started_ns; /* of the one under way, if it is timed; else 0 */
	uintptr_t outermost; /* stack address of the outermost call under way, 0: none */
	struct gm_changes *changes; /* its own counts (changes.h), NULL: it shares them or has yet to ask */
	uint8_t refusing;    /* the call under way is to be refused by the driver's wrapper (refuse.c) */
	uint8_t busy;	     /* in the tracker: a signal handler's calls are let through unrecorded */
	uint8_t shares;	     /* it did ask */
	uint8_t changing;    /* if so: the outermost call may change what the device holds */
};
extern __thread struct gm_thread gm_thread
	__attribute__((tls_model("initial-exec"), visibility("hidden")));

#define GM_TIMED 64 /* one stretch of work in so many is timed, for the report's overhead figure */

void gm_time_begin(void);
void gm_time_end(void);

/* Marks a thread as inside the tracker that is known not to be. */
static inline void gm_begin_work(void)
{
	gm_thread.busy = 1;
	if (__builtin_expect(++gm_thread.works % GM_TIMED == 0, 0))
		gm_time_begin();
}

/*
 * Marks the calling thread as inside the tracker, for events that are no calls of CUDA's; false when it
 * already is (a signal handler came between): then nothing is to be recorded.
 */
static inline bool gm_enter_tracker(void)
{
	if (gm_thread.busy)
		return false;
	gm_begin_work();
	return true;
}

static inline void gm_leave_tracker(void)
{
	if (__builtin_expect(gm_thread.started_ns != 0, 0))
		gm_time_end();
	gm_thread.busy = 0;
}

/* public.c: the marks that the program made before the file was opened. */
void gm_public_start(void);

/* A mark, kept for the file that is yet to be opened if there is none. */
void gm_public_mark(const char *name, enum gm_mark_source source);

/* libcuda was found: time to open the unwinder and NVML, outside of any allocator's lock. */
void gm_driver_found(void);

/* Says in the file which backend is in use; again when that changed after the file was opened. */
void gm_describe_backend(void);

/* True for an object that LD_PRELOAD or ld.so.preload names. */
bool gm_preloaded(const struct gm_object *object);

/* The end of the process by exit, _exit or exec: closes the books and prints the lines of contract.md. */
void gm_finish(unsigned end, int status, bool print);

/* The end did not come about (a failed exec): the file goes on. */
void gm_finish_undone(void);

/* ends.c: finds the real functions behind the wrappers, while no lock can be in the way. */
void gm_ends_init(void);

/* jumps.c: the same for longjmp. */
void gm_jumps_init(void);

/*
 * Before the real function is called. Tells the outermost call from those inside it and prepares what
 * must be known before (a free's record, the driver's free bytes). Allocates nothing, never fails.
 */
void gm_call_begin(struct gm_call *call);

/* The same for a call that CUPTI tells of. gm_call_begin comes here unless CUPTI is the backend. */
void gm_call_enter(struct gm_call *call);

/* The outermost call of this thread that `call` happens in; `call` itself if it is that. */
const struct gm_call *gm_call_outermost(const struct gm_call *call);

/* After it, with its result: records what happened. The caller returns `result` unchanged. */
void gm_call_end(struct gm_call *call, int result);

/* The calling thread's outermost call was left otherwise than by its end. Async-signal-safe. */
void gm_call_abandoned(void);

/*
 * In a wrapper, first thing: an exception or a cancelled thread that unwinds through it takes the mark
 * of its call along. A personality routine alone (call.c), no landing pad: those would need libgcc.
 */
#define GM_WATCH_UNWINDING() __asm__ volatile(".cfi_personality 0x1b, gm_unwinding")
int gm_unwinding(int version, int actions, uint64_t class, void *exception, void *context);

/*
 * True when this call is to be answered out of memory without calling CUDA (GPUMEMTRACE_CAPACITY and
 * _FAIL): only in a driver wrapper, so that cudart sets its own error state. Sets the out-pointer to 0.
 */
bool gm_refuse_answers(struct gm_call *call);

static inline bool gm_call_refused(struct gm_call *call)
{
	return __builtin_expect(gm_thread.refusing, 0) && gm_refuse_answers(call);
}

#endif

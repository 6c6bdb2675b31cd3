/*
 * Stacks: taking one (native by libunwind or a fallback, Python without the GIL) and interning it,
 * so that equal stacks get the same number in the output file. Knows nothing of CUDA or of
 * allocations. May call store/ (writer.h) and libc calls that take no lock a program can hold; no
 * malloc, no dlopen outside gm_stack_init.
 */
#ifndef GM_STACK_STACK_H
#define GM_STACK_STACK_H

#include "store/layout.h"
#include "store/writer.h"
#include <stdbool.h>

/* The frames that a stack holds: GPUMEMTRACE_STACKS. */
enum gm_stack_mode { GM_STACKS_FULL, GM_STACKS_NATIVE, GM_STACKS_PYTHON, GM_STACKS_OFF };

/*
 * A stack as it was taken: native return addresses, innermost first and already cut at the
 * interpreter where Python frames follow, and Python frames as numbers in GM_TABLE_FRAMES.
 */
struct gm_raw_stack {
	uint16_t natives, pythons;
	uint16_t flags; /* GM_STACK_... */
	uint64_t hash;	/* gm_pcs_hash of the native ones; 0 if not known */
	uintptr_t pc[GM_MAX_DEPTH];
	uint32_t python[GM_MAX_DEPTH];
};

/* The unwinder that is asked for: GPUMEMTRACE_UNWINDER. */
enum gm_stack_unwinder {
	GM_UNWINDER_AUTO, /* the tables, and what is registered with libgcc; else what works */
	GM_UNWINDER_TABLES,	    /* the loaded objects' tables alone */
	GM_UNWINDER_LIBUNWIND,	    /* its unw_backtrace */
	GM_UNWINDER_LIBGCC,	    /* its _Unwind_Backtrace */
	GM_UNWINDER_FRAME_POINTERS,
	GM_UNWINDER_CHECK	    /* as auto, and each walk is compared with libunwind's */
};

/*
 * Asks for an unwinder; before gm_stack_init, which chooses another if it cannot be had. `log` is
 * called with lines for the user, without prefix or line end, from any thread and context.
 */
void gm_stack_ask_unwinder(enum gm_stack_unwinder unwinder, void (*log)(const char *line));

/*
 * Opens the unwinder privately, self-tests it, finds the interpreter if there is one. Called at the
 * first driver look-up and again when nothing was found yet; never inside an allocator's call.
 * `depth` is the most frames a stack keeps, native and Python together (1..GM_MAX_DEPTH).
 * Not thread-safe by itself: the caller holds its start lock. Never fails: without an unwinder
 * stacks are shorter, and gm_stack_unwinder() says so.
 */
void gm_stack_init(enum gm_stack_mode mode, unsigned depth);

/*
 * Sets whether captures use the walk cache (walk_cache.h), which they do unless told otherwise. The
 * stacks are the same without it; for measuring. Any thread, at any time.
 */
void gm_stack_cache(bool on);

/* Name of the unwinder in use ("libunwind", "libgcc", "frame pointers", "none"). Static storage. */
const char *gm_stack_unwinder(void);

/* CPython's version ("3.12.3"), "" without Python, or a sentence why frames cannot be read. Static.
 */
const char *gm_stack_python(void);

/*
 * Takes the calling thread's stack. Frames before the one that returns to `caller` (the wrapper's
 * own return address) are the shim's and are left out; `caller` is the first frame kept. `limit`
 * bounds the frames (0: the depth given to init). Thread-safe, takes no lock that a program's lock
 * can wait for, safe in signal handlers. Python frames seen for the first time are written to the
 * store.
 */
void gm_stack_capture(struct gm_raw_stack *raw, uintptr_t caller, unsigned limit);

/*
 * The stack's record number in GM_TABLE_STACKS, made if new; GM_NONE if it is empty or the store is
 * full (then counted there). A hit allocates nothing. `caller_module` (may be NULL) gets the
 * innermost module outside CUDA's libraries (GM_TABLE_MODULES), GM_NONE if there is none. The
 * caller must hold no lock of the tracker's; interning has one of its own, held briefly.
 */
uint32_t gm_stack_intern(const struct gm_raw_stack *raw, uint32_t *caller_module);

/* The caller's frame at the moment when the program called a wrapper. */
struct gm_entry {
	uintptr_t pc;	  /* return address */
	uintptr_t sp, bp; /* as they are after the return; sp 0: not known */
};

/*
 * Of the function that this stands in, which keeps its frame while it is used. It must have no
 * alloca and no array of variable length: the frame of one that has, and variables of more than 16
 * bytes' alignment too, does not begin at its caller's stack pointer (the shim's build: -Walloca).
 */
#define GM_ENTRY_HERE() GM_ENTRY_OF(GM_FRAME_HERE())

/*
 * The same in two steps: a frame in one register, and its entry where it is needed, while it is
 * there.
 */
#if defined(__x86_64__)
#define GM_FRAME_HERE() ((uintptr_t)__builtin_frame_address(0))
#define GM_ENTRY_OF(frame)                                                                         \
	((struct gm_entry){((const uintptr_t *)(frame))[1], (frame) + 16,                         \
			   *(const uintptr_t *)(frame)})
#else
#define GM_FRAME_HERE()	   ((uintptr_t)__builtin_return_address(0))
#define GM_ENTRY_OF(frame) ((struct gm_entry){(frame), 0, 0})
#endif

/*
 * Both of the above in one, cheaper where the stack is one that was taken before: the number of the
 * calling thread's stack from the frame of `entry` outwards.
 */
uint32_t gm_stack_take(const struct gm_entry *entry, unsigned limit, uint32_t *caller_module);

struct gm_walk_cache;
struct gm_prediction;

/*
 * The same in two steps, without a limit. After the first, `expected` is the number that the second
 * will probably give: time to fetch what goes with it. Nothing in between may take a stack, and the
 * second must follow, with the entry where it was.
 *
 * `hint` is 0 where each stack of the thread is taken, because the stacks before it then predict
 * this one. Otherwise it is a number that is mostly the same when the stack is: gm_stack_hint.
 */
struct gm_stack_taking {
	const struct gm_entry *entry;
	uint32_t expected; /* or GM_NONE */
	uint16_t depth;
	bool brief; /* fewer frames than others have */
	struct gm_walk_cache *cache;		/* taken; NULL: none */
	const struct gm_prediction *prediction; /* or NULL */
	const uint64_t *values;			/* of the predicted walk's words */
};

/* Returns the hint for the stack of a block of so many bytes that is sampled. Any thread. */
uint64_t gm_stack_hint(uint64_t bytes);

void gm_stack_begin(struct gm_stack_taking *taking, const struct gm_entry *entry, uint64_t hint);
uint32_t gm_stack_end(struct gm_stack_taking *taking, uint32_t *caller_module);

/* Forgets everything interned: the child of a fork starts its own file. Single thread. */
void gm_stack_reset(void);

/* Something was unloaded (a dlclose returned): modules are to be looked at again. Any thread. */
void gm_stack_modules_changed(void);

/*
 * The number of modules that the stacks of the open file have led through. While it stays the same,
 * no stack leads through a module that none led through before. Any thread; a file must be open.
 */
static inline uint32_t gm_stack_modules(void)
{
	return __atomic_load_n(&gm_file->tables[GM_TABLE_MODULES].count, __ATOMIC_ACQUIRE);
}

#endif

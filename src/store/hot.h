/*
 * The placement of the code and the variables that every event uses. The program uses the caches
 * for its own purposes between two events, so each line and each page that an event touches is
 * usually a miss: data that events use together lie side by side.
 */
#ifndef GM_STORE_HOT_H
#define GM_STORE_HOT_H

/*
 * Groups of small variables. Two are a cache line each: what the hook of PyTorch's blocks reads of
 * every block, and what all recorded events read besides. The others are the variables that hardly
 * ever change, those of them that taking a stack needs, and the counters that an event changes
 * under the tracker's lock. The alignment of the macro takes precedence over that of the variable's
 * type with clang: a variable that needs more than the macro says names its alignment after it.
 */
#define GM_HOT_HOOK	__attribute__((section("gm_hot_hook"), aligned(8)))
#define GM_HOT_EVENT	__attribute__((section("gm_hot_event"), aligned(8)))
#define GM_HOT		__attribute__((section("gm_hot"), aligned(8)))
#define GM_HOT_STACK	__attribute__((section("gm_hot_stack"), aligned(8)))
#define GM_HOT_COUNTERS __attribute__((section("gm_hot_counters"), aligned(16)))

/*
 * Declares that a variable of another file is in this library, so that its address is known when
 * linking.
 */
#define GM_HIDDEN __attribute__((visibility("hidden")))

/*
 * Puts a function among those that every event runs. It begins a cache line, so that it lies in as
 * few as it can, in every build the same.
 */
#define GM_HOT_CODE __attribute__((hot, aligned(64)))

/* Puts a function out of line and away from the code that every event runs. */
#define GM_COLD __attribute__((noinline, cold))

/*
 * The next two prefetch the cache line at an address, the first for writing, even if another
 * processor has it. On x86 they are not __builtin_prefetch: gcc takes a function that does nothing
 * else for one without effect and removes the calls.
 */
static inline void gm_prefetch(const void *address)
{
#ifdef __x86_64__
	__asm__ volatile("prefetchw %0" : : "m"(*(const char *)address));
#else
	__builtin_prefetch(address, 1);
#endif
}

static inline void gm_prefetch_to_read(const void *address)
{
#ifdef __x86_64__
	__asm__ volatile("prefetcht0 %0" : : "m"(*(const char *)address));
#else
	__builtin_prefetch(address);
#endif
}

#endif

/*
 * Where what every event takes lies: a program uses its caches for something else, so each line and each
 * page of ours is one to be fetched anew.
 */
#ifndef GM_STORE_HOT_H
#define GM_STORE_HOT_H

/*
 * Small variables side by side, in few cache lines: those that nearly never change, those of them that a
 * stack takes, and those that an event changes under the tracker's lock.
 */
#define GM_HOT	     __attribute__((section("gm_hot"), aligned(8)))
#define GM_HOT_STACK __attribute__((section("gm_hot_stack"), aligned(8)))
#define GM_HOT_BOOKS __attribute__((section("gm_hot_books"), aligned(16)))

/* Of a variable of another file: it is in the same library, so that its address is known. */
#define GM_HIDDEN __attribute__((visibility("hidden")))

/* Functions side by side, in few pages. */
#define GM_HOT_CODE __attribute__((hot))

/*
 * Has a line on its way into the cache, for writing: another thread's processor may have it. (A function
 * of nothing but __builtin_prefetch has no effect in gcc's eyes and is left out.)
 */
static inline void gm_fetch(const void *line)
{
#ifdef __x86_64__
	__asm__ volatile("prefetchw %0" : : "m"(*(const char *)line));
#else
	__builtin_prefetch(line, 1);
#endif
}

/* Out of line, away from those. */
#define GM_SELDOM __attribute__((noinline, cold))

#endif

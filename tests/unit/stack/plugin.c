/*
 * A library that tests load, unload and load another in place of. PLUGIN is a or b: the two have
 * the same size and the same calls at the same places, but other names and, in between, other
 * frames.
 */
#include <stdint.h>

#define JOIN_(a, b) a##b
#define JOIN(a, b)  JOIN_(a, b)
#define NAME(what)  JOIN(JOIN(what, _), PLUGIN)

uint32_t NAME(plugin)(uint32_t (*take)(unsigned));

__attribute__((noinline)) uint32_t NAME(plugin)(uint32_t (*take)(unsigned))
{
#ifdef PLUGIN_LARGE_FRAME
	volatile char frame[4096];
#else
	volatile char frame[256];
#endif
	uint32_t stack;

	frame[0] = 1;
	stack = take(0);
	return stack + frame[0] - 1;
}

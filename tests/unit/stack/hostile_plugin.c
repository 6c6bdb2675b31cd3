/*
 * Two libraries of hostile.c that differ in the size of one frame, HOSTILE_FRAME, and so in nothing
 * but what the unwind tables say of the same address.
 */
#include "hostile.h"

hostile_plugin plugin;

__attribute__((noinline)) unsigned long plugin(unsigned long fill, void (*capture)(void))
{
	volatile unsigned long frame[HOSTILE_FRAME / sizeof(unsigned long)];

	unsigned words = HOSTILE_FRAME / sizeof(unsigned long);

#if defined(__x86_64__)
	/* in code of the same length, however large the number */
	__asm__ volatile("movl %1, %0" : "=r"(words) : "i"(HOSTILE_FRAME / sizeof(unsigned long)));
#endif
	for (unsigned i = 0; i < words; i++)
		frame[i] = fill;
	capture();
	return (unsigned long)__builtin_return_address(0) + frame[0] - fill;
}

/*
 * A library that keeps its caller until standard input has a byte or ends: in its constructor
 * (HELD_IN_LOADER), or in a malloc of its own.
 */
#include <stddef.h>
#include <unistd.h>

static void wait_for_input(void)
{
	char byte;

	(void)!read(STDIN_FILENO, &byte, 1);
}

#ifdef HELD_IN_LOADER
static void __attribute__((constructor)) loaded(void)
{
	wait_for_input();
}
#else
__attribute__((visibility("default"))) void *malloc(size_t bytes)
{
	(void)bytes;
	wait_for_input();
	return NULL;
}
#endif

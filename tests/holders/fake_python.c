/*
 * A program that looks like a CPython that cannot be read, in the way that its argument names, and
 * waits until its standard input ends: holders.py has what is said of each.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t address;
int cuInit(unsigned flags);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuCtxSetCurrent(void *context);
int cuMemAlloc_v2(address *pointer, size_t bytes);

/* Offsets of 3.12 in words: src/holders/python_offsets.c. */
#define FIRST_INTERPRETER 5
#define MODULES		  118

uint64_t _PyRuntime[2048], PyType_Type[64], PyBaseObject_Type[64], PyDict_Type[64], Py_Version;
#ifdef DEBUG_BUILD
uint64_t _Py_NegativeRefcount;
#endif
static uint64_t interpreter[2048];

static void look_like(const char *way)
{
	unsigned minor = (unsigned)atoi(way);
	const char *rest = strchr(way, ' ');

	Py_Version = 3ull << 24 | (uint64_t)minor << 16;
	if (minor >= 13 && strcmp(rest, " silent") != 0)
		memcpy(_PyRuntime, "xdebugpy", 8);
	_PyRuntime[2] = strcmp(rest, " free-threaded") == 0;
	if (strcmp(rest, " ending") == 0 || strcmp(rest, " strange") == 0)
		_PyRuntime[FIRST_INTERPRETER] = (uint64_t)(uintptr_t)interpreter;
	if (strcmp(rest, " strange") == 0)
		interpreter[MODULES] = (uint64_t)(uintptr_t)PyDict_Type;
}

int main(int count, char **arguments)
{
	address pointer;
	void *context;

	if (count != 2 || cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) ||
	    cuCtxSetCurrent(context) || cuMemAlloc_v2(&pointer, 1024))
		return 1;
	look_like(arguments[1]);
	puts("ready");
	fflush(stdout);
	return getchar() == 'x';
}

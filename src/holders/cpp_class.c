/*
 * Classes of C++ (cpp_class.h), by the Itanium C++ ABI: the words before a vtable's functions are
 * the offset to the whole object, 0 of an object's own, and the type_info, which begins with its
 * own vtable and the name.
 */
#include "holders/cpp_class.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_NAME 512u

void gm_cpp_last_part(const char *mangled, char *text, size_t bytes)
{
	const char *at = mangled + (*mangled == 'N');

	snprintf(text, bytes, "%s", mangled);
	while (*at >= '0' && *at <= '9') {
		char *end;
		unsigned long length = strtoul(at, &end, 10);

		if (length > strlen(end))
			return;
		snprintf(text, bytes, "%.*s", (int)length, end);
		at = end + length;
	}
}

/* A word of a mapped file. */
static const struct gm_mapping *file_at(struct gm_memory *memory, uint64_t address)
{
	const struct gm_mapping *mapping = address % 8 ? NULL : gm_memory_find(memory, address);

	return mapping && mapping->path[0] == '/' ? mapping : NULL;
}

static bool read_name(struct gm_memory *memory, uint64_t address, char *name)
{
	for (unsigned i = 0; i < MOST_NAME; i++) {
		if (!gm_memory_read(memory, address + i, &name[i], 1) || (signed char)name[i] < 0)
			return false;
		if (!name[i])
			return i > 1;
	}
	return false;
}

bool gm_cpp_class(struct gm_memory *memory, uint64_t vtable, char *text, size_t bytes)
{
	const struct gm_mapping *mapping = vtable > 4096 ? file_at(memory, vtable) : NULL;
	uint64_t before[2], info[2];
	char mangled[MOST_NAME], name[MOST_NAME];
	const char *at = mangled;

	if (!mapping || !gm_memory_read(memory, vtable - 16, before, sizeof(before)) || before[0] ||
	    !before[1] || !file_at(memory, before[1]) ||
	    !gm_memory_read(memory, before[1], info, sizeof(info)) || !file_at(memory, info[0]) ||
	    !read_name(memory, info[1], mangled))
		return false;
	at += *at == '*'; /* a class of one translation unit */
	if (!strchr("NS", *at) && (*at < '1' || *at > '9'))
		return false;
	gm_cpp_last_part(at, name, sizeof(name));
	snprintf(text, bytes, "%.200s (%.200s)", name, strrchr(mapping->path, '/') + 1);
	return true;
}

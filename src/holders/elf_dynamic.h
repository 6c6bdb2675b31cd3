/*
 * Exported symbols of an ELF file that a process has mapped.
 */
#ifndef GM_HOLDERS_ELF_DYNAMIC_H
#define GM_HOLDERS_ELF_DYNAMIC_H

#include "holders/process_memory.h"

struct gm_exported {
	const char *name;
	uint64_t address; /* in the process; 0: not exported */
};

/*
 * Looks up the names in the file of a mapping that begins at offset 0. Returns how many are
 * exported; 0 too if the file cannot be read or is not the one that is mapped.
 */
unsigned gm_exported_symbols(const struct gm_memory *memory, const struct gm_mapping *mapping,
			     struct gm_exported *names, unsigned count);

/*
 * The variable of a mapped file at an address, by its symbols: true if there is one, with the
 * distance from its beginning in `into`; else `name` is empty. `path` is the file's as the mappings
 * have it.
 */
bool gm_variable_at(const struct gm_memory *memory, const char *path, uint64_t address, char *name,
		    size_t name_bytes, uint64_t *into);

/*
 * The first address after the segments of a mapped file, 0 if the file cannot be read. The kernel
 * merges the mapping of its zeroed data with an anonymous one that begins there.
 */
uint64_t gm_object_end(const struct gm_memory *memory, const char *path);

#endif

/*
 * The memory of another process, or of a core file: its mappings, and words of it read through a
 * bounded cache. Nothing runs in the process, nothing stops it, and mappings of devices are never
 * read. A process goes on while it is read: what was read may have changed since, so a result has
 * to be read again with gm_memory_fresh before it is shown.
 */
#ifndef GM_HOLDERS_PROCESS_MEMORY_H
#define GM_HOLDERS_PROCESS_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gm_mapping {
	uint64_t start, end, offset, inode;
	uint64_t file_at; /* core files: where its bytes lie in the core */
	uint64_t file_bytes;
	int file;	  /* core files: an open file that has what the core lacks, + 1; 0: none */
	const char *path; /* "" of anonymous memory */
	bool readable, writable, executable;
	bool shared; /* with other processes, or with a file */
};

struct gm_memory;

/*
 * Opens a process's memory. Returns NULL and a sentence in `error` if the process does not exist or
 * the system does not let this user read it. The caller closes it.
 */
struct gm_memory *gm_memory_of_process(int pid, char *error, size_t error_bytes);

/* Opens an ELF core file of this machine's architecture in the same way. */
struct gm_memory *gm_memory_of_core(const char *path, char *error, size_t error_bytes);

void gm_memory_close(struct gm_memory *memory);

/* The process's id; of a core file the one it says. */
int gm_memory_pid(const struct gm_memory *memory);

/* True if it cannot change while it is read. */
bool gm_memory_still(const struct gm_memory *memory);

/* Says that the process does not change: a copy that only waits. */
void gm_memory_set_still(struct gm_memory *memory);

/* True if what is read is a core file. */
bool gm_memory_is_core(const struct gm_memory *memory);

/* The mappings by address, those that are never read included. */
const struct gm_mapping *gm_memory_mappings(const struct gm_memory *memory, unsigned *count);

/* The mapping that holds an address; NULL. */
const struct gm_mapping *gm_memory_find(const struct gm_memory *memory, uint64_t address);

/*
 * Copies `bytes` bytes at `address`; false if not all of them can be read. The first reads through
 * the cache, the second past it.
 */
bool gm_memory_read(struct gm_memory *memory, uint64_t address, void *to, size_t bytes);
bool gm_memory_fresh(struct gm_memory *memory, uint64_t address, void *to, size_t bytes);

/*
 * Reads `count` words past the cache, in as few system calls as there can be, so that they were
 * true within microseconds of each other. False if one of them cannot be read.
 */
bool gm_memory_words(struct gm_memory *memory, const uint64_t *addresses, uint64_t *words,
		     unsigned count);

/* Forgets what the cache holds. */
void gm_memory_forget(struct gm_memory *memory);

/* Reads past the cache from now on, or through it again. */
void gm_memory_set_fresh(struct gm_memory *memory, bool fresh);

#endif

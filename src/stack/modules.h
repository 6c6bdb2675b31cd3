/*
 * The loaded objects by address, in a sorted table of our own so that the loader is asked only when
 * something changed, and the records of those objects that stacks refer to.
 */
#ifndef GM_STACK_MODULES_H
#define GM_STACK_MODULES_H

#include "stack/arena.h"

#include <stdbool.h>
#include <stdint.h>

struct gm_module {
	uintptr_t start, end, bias;
	uint64_t identity; /* hash of path and build id */
	const char *path;  /* in the arena */
	uint32_t record;   /* in GM_TABLE_MODULES; GM_NONE until a stack refers to it */
	uint8_t build_id_bytes;
	uint8_t build_id[24];
	bool cuda;	  /* libcuda, libcudart, libcupti */
	bool ours;	  /* the shim */
	bool interpreter; /* CPython's own code */
	bool program;	  /* the executable */
	bool libc;	  /* threads begin in it: libc, libpthread */
	bool seen;	  /* during a refresh */
};

struct gm_range {
	uintptr_t start, end;
};

/* The loader's objects at one moment; taken without any lock of ours held. */
struct gm_modules_snapshot {
	char *memory; /* NULL: nothing changed since `adds` and `subs` */
	size_t bytes;
	unsigned count;
	unsigned long long adds, subs;
};

/* Asks the loader. Any thread. False without memory. Must be followed by gm_modules_merge or _drop.
 */
bool gm_modules_snapshot(struct gm_modules_snapshot *snapshot);
void gm_modules_drop(struct gm_modules_snapshot *snapshot);

/*
 * Brings the table up to date and drops the snapshot. Writes to `changed` (room for `room`) the
 * ranges whose meaning changed: of objects with a record that went away and, with `also_new`, of
 * those that came; returns how many there were, which may be more than `room`. Caller holds the
 * stack lock, as for all below.
 */
unsigned gm_modules_merge(struct gm_modules_snapshot *snapshot, struct gm_arena *arena,
			  bool also_new, struct gm_range *changed, unsigned room);

/* The object that covers the address, or NULL. */
struct gm_module *gm_modules_find(uintptr_t pc);

/* Its record, written if need be; GM_NONE when the file is full. */
uint32_t gm_modules_record(struct gm_module *module);

/* Addresses that are CPython's own code, (0, 0) for none: marks the module. */
void gm_modules_set_interpreter(uintptr_t start, uintptr_t end);

void gm_modules_reset(void);

#endif

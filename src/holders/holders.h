/*
 * The objects of a CPython that hold addresses: for each address a chain of references from a root,
 * a module or a thread, to the object that has it. Every link was read forwards, and again at the
 * end; a chain that had changed is not shown.
 */
#ifndef GM_HOLDERS_HOLDERS_H
#define GM_HOLDERS_HOLDERS_H

#include "holders/process_memory.h"

/* The certainty and the kind of a chain. */
enum gm_chain_end {
	GM_CHAIN_COMPLETE, /* from a root to the address */
	GM_CHAIN_UNSURE,   /* one link is a word of an unknown structure, or on a frame's stack */
	GM_CHAIN_WEAK,	   /* only a weak reference is known */
	GM_CHAIN_UNKNOWN,  /* the chain's first object is referred to by no known object */
	GM_CHAIN_GARBAGE,  /* unreachable: gc.collect() frees it */
	GM_CHAIN_CHANGED,  /* it changed again and again while it was read */
	GM_CHAIN_NONE,	   /* no reference was found */
	GM_CHAIN_CPP	   /* from an object of C++, whose own holder is not known */
};

struct gm_chain {
	enum gm_chain_end end;
	const char *const *steps; /* without indices and keys: equal of all elements of a list */
	const char *const *exact; /* with them */
	unsigned count;
	bool native; /* from a global variable of native code */
};

struct gm_holders;

/*
 * Searches the objects of a process or core file for the addresses, of which none may be there
 * twice. Returns NULL and a sentence in `error` if there is no CPython whose objects can be read.
 * The caller frees it; `memory` must live until it has returned.
 */
struct gm_holders *gm_holders_find(struct gm_memory *memory, const uint64_t *addresses,
				   uint32_t count, char *error, size_t error_bytes);
void gm_holders_free(struct gm_holders *holders);

/* The chain of an address, by its number. Lives as long as the holders. */
const struct gm_chain *gm_holders_chain(const struct gm_holders *holders, uint32_t number);

/* "3.11", how many objects and references were looked at, whether all could be. */
struct gm_holders_figures {
	unsigned minor; /* 0: the process has no CPython */
	uint64_t objects, references;
	bool whole;
};
struct gm_holders_figures gm_holders_figures(const struct gm_holders *holders);

#endif

/*
 * Holders of addresses in native programs: the global variable that contains an address, directly
 * or through objects of the heap.
 */
#ifndef GM_HOLDERS_NATIVE_HOLDERS_H
#define GM_HOLDERS_NATIVE_HOLDERS_H

#include "holders/process_memory.h"

#define GM_NATIVE_STEPS 24u

struct gm_native_chain {
	char *steps[GM_NATIVE_STEPS]; /* from malloc */
	unsigned count;		      /* 0: nothing was found */
	bool cpp;		      /* it begins with an object of C++, held by nothing known */
	bool loose;		      /* with `cpp` wanted: an object on the way has no class */
};

/*
 * Fills a chain for each address, of which none may be there twice. `cpp`: through objects of C++
 * that their vtable tells and what holds those; through any object of the heap only where nothing
 * else is found, and said so. Of a running
 * process every word of a chain was read again at the end. False if memory ran out. The caller
 * frees the steps.
 */
bool gm_native_find(struct gm_memory *memory, const uint64_t *addresses, uint32_t count, bool cpp,
		    struct gm_native_chain *chains);

#endif

/*
 * Leading the calls of a process that was started without the shim to the shim: by the relocation
 * slots of the loaded objects, and by the tables of driver functions that a cudart keeps.
 *
 * A slot is a word that the loader filled, or will fill at the first call, with the address of a
 * function by name. It is replaced where the shim exports that name and the word holds what the
 * loader put there. No page's protection is changed: what is read-only by then is written through
 * /proc/self/mem.
 *
 * A table is a run of eight words or more of an object's writable data each of which is exactly the
 * address of an exported function of libcuda. A lone word that is equal to such an address is left
 * alone: it may be anything.
 */
#ifndef GM_INTERPOSE_SLOTS_H
#define GM_INTERPOSE_SLOTS_H

#include <stdint.h>

struct gm_slot_counts {
	uint32_t slots,
		table_words; /* that lead to the shim now, or led to it before a restoring */
	uint32_t failed;     /* words that could not be written, or for which there is no room */
	uint32_t lost;	     /* words that could not be restored, and lead to the shim still */
};

/*
 * Redirects what can be redirected in objects that were not looked at yet; `anew`: in all objects.
 * Takes the loader's list lock meanwhile. Calls no malloc and opens no library. One thread at a
 * time.
 */
void gm_slots_redirect(int anew, struct gm_slot_counts *counts);

/*
 * Redirects as gm_slots_redirect if objects were loaded or unloaded since. For dlclose, and for
 * dlsym, which follows most loads. Any thread.
 */
void gm_slots_refresh(void);

/* Puts back what the words held, unless somebody else has changed them. One thread at a time. */
void gm_slots_restore(struct gm_slot_counts *counts);

#endif

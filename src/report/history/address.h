/*
 * The allocations that an address belonged to over time: for illegal accesses and for pointers in a
 * core file.
 */
#ifndef GM_REPORT_HISTORY_ADDRESS_H
#define GM_REPORT_HISTORY_ADDRESS_H

#include "report/history/events.h"

struct gm_address_history {
	uint64_t address;
	/* Events of memory that covers the address, oldest first; in the document's zone. */
	struct gm_event_record *events;
	unsigned count;
	/* Live memory that covers it, the innermost level (a block within its segment) first. */
	const struct gm_block **blocks;
	unsigned blocks_count;
	uint64_t from_ns; /* events before this time are not known; 0: all are */
};

/*
 * Follows an address through the complete history, or as far back as the ring reaches. Of a free
 * whose allocation lies before that, and of a failed one, only the address itself is compared.
 */
struct gm_address_history gm_address_history(struct gm_doc *doc, uint64_t address);

#endif

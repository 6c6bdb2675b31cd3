/*
 * The leaks, each of which has one finding: the growing sites of one function are one leak, by
 * whatever lines, callers or copies of a loop's body they are told apart.
 */
#ifndef GM_REPORT_JUDGE_LEAKS_H
#define GM_REPORT_JUDGE_LEAKS_H

#include "report/doc/doc.h"

struct gm_leak {
	uint32_t site;	 /* the one that holds most */
	uint32_t *sites; /* all of them, that one first */
	unsigned sites_count;
	uint64_t bytes, blocks;	    /* live at the end of the work */
	uint64_t threads, streams;  /* that the blocks come from */
	uint64_t first_ns, last_ns; /* when the first and the last of the blocks was allocated */
};

/*
 * True for memory of a backward pass that PyTorch's own threads made, so that no line of the
 * program is in the stack: gradients, which live as long as their parameters. All of it is one
 * leak.
 */
bool gm_grew_in_backward(const struct gm_site *site);

/*
 * The leaks among the sites whose verdict is `grow`, hidden and suppressed ones left out: the
 * largest first. The list is in the document's zone.
 */
struct gm_leak *gm_find_leaks(struct gm_doc *doc, unsigned *count);

#endif

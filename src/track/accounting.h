/*
 * The accounting of an allocation: it counts in the records of its site, level and usage, in its
 * pool and in the timeline (account/counters.h has the rules). For track/, under the lock.
 */
#ifndef GM_TRACK_ACCOUNTING_H
#define GM_TRACK_ACCOUNTING_H

#include "store/layout.h"

/* An allocation came or is about to go. `site` may be NULL. */
void gm_account_alloc(const struct gm_alloc_record *alloc, struct gm_site_record *site);
void gm_account_free(const struct gm_alloc_record *alloc, struct gm_site_record *site);

/* A live allocation turned out to be larger by `more_bytes`. */
void gm_account_resize(const struct gm_alloc_record *alloc, struct gm_site_record *site,
		       uint64_t more_bytes);

/* An allocation was refused. */
void gm_account_failure(int device, unsigned level, unsigned kind, struct gm_site_record *site);

#endif

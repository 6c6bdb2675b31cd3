/*
 * Driver functions that are no rows of the table. A newer driver may have some that begin captures
 * or make contexts, which would go unseen.
 */
#ifndef GM_RECORDER_UNLISTED_H
#define GM_RECORDER_UNLISTED_H

/*
 * The program asked for a driver function of this name, which is no row of the table. If it may
 * begin a capture, streams are queried from now on whatever was counted (captures.h); if it may
 * make a context, so is the context of each allocation. Any context.
 */
void gm_unlisted_function(const char *name);

#endif

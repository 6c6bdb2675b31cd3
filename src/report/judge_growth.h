/*
 * The growth test: do bytes keep rising? A pure function over windows, so that its error rates can be
 * measured on generated traces.
 */
#ifndef GM_REPORT_JUDGE_GROWTH_H
#define GM_REPORT_JUDGE_GROWTH_H

#include "store/layout.h"

#define GM_GROWTH_LEAST_WINDOWS 4 /* needed after the warm-up */

enum gm_growth { GM_GROWTH_TOO_FEW, GM_GROWTH_NONE, GM_GROWTH_RISES };

struct gm_growth_result {
	enum gm_growth growth;
	unsigned windows;	/* judged */
	unsigned rises;		/* steps from one to the next in which the floor rose */
	uint64_t first_bytes, last_bytes; /* floor of the first and last window judged */
};

/*
 * Judges `count` closed windows in order of time, of which the first `warmup` are ignored. Windows
 * before the first use (maximum 0) do not count at all.
 */
struct gm_growth_result gm_judge_growth(const struct gm_window *windows, unsigned count,
					unsigned warmup);

#endif

/*
 * The growth test: do bytes keep rising? A pure function over windows, so that its error rates can
 * be measured on generated traces (tests/unit/growth, docs/leak-verdicts.md).
 */
#ifndef GM_REPORT_JUDGE_GROWTH_H
#define GM_REPORT_JUDGE_GROWTH_H

#include "store/layout.h"
#include <stdbool.h>

#define GM_GROWTH_LEAST_WINDOWS 4 /* needed after the warm-up */

/* The allocations of one window that are live now. */
struct gm_survivors {
	uint64_t count, bytes;
};

enum gm_growth {
	GM_GROWTH_TOO_FEW, /* windows; or they rise, but are too few to tell chance from growth */
	GM_GROWTH_NONE,
	GM_GROWTH_RISES
};

struct gm_growth_result {
	enum gm_growth growth;
	unsigned windows;		  /* judged */
	unsigned rises;			  /* steps from one to the next in which the floor rose */
	uint64_t first_bytes, last_bytes; /* floor of the first and last window judged */
	bool rose;	  /* the floors of the last third lie above those of the first */
	bool left_behind; /* gm_judge_survivors over the windows */
};

/*
 * Judges `count` closed windows in order of time, of which the first `warmup` are ignored. Windows
 * before the first use (maximum 0) do not count at all. `survivors` has `count` entries, one for
 * each window; NULL: not known, then only steady growth is found.
 */
struct gm_growth_result gm_judge_growth(const struct gm_window *windows,
					const struct gm_survivors *survivors, unsigned count,
					unsigned warmup);

/*
 * True if the floor of all `count` windows never falls and goes on rising to the end. Where only
 * what was held at the windows' ends is known, the windows hold that.
 */
bool gm_growth_steady(const struct gm_window *windows, unsigned count);

/*
 * Judges growth from survivors alone, in `count` equal stretches of whatever order: true if blocks
 * were left behind over the whole run. `all`: nothing was ever freed, so that there is no working
 * memory among them and the end counts as well.
 */
bool gm_judge_survivors(const struct gm_survivors *survivors, unsigned count, bool all);

#endif

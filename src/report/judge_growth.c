/*
 * The rule. Of each window the floor counts, its smallest live bytes: a loop's working memory comes
 * and goes above the floor, a leak raises it. Growth is
 *   - no window's floor under the one before it,
 *   - a rise in at least half of the steps, and at least one in the last third of them,
 *   - no single step with more than half of the whole rise (loading, optimizer state, workspaces);
 *   - of fewer than eight windows also no falling ceiling, since few floors rise by chance too often.
 */
#include "report/judge_growth.h"
#include <stdbool.h>

#define FEW_WINDOWS 8 /* n floors are in order by chance in 1 of n! cases: 1 of 40,320 from here on */

static bool ceiling_falls(const struct gm_window *windows, unsigned count)
{
	for (unsigned i = 1; i < count; i++)
		if (windows[i].max_bytes < windows[i - 1].max_bytes)
			return true;
	return false;
}

struct gm_growth_result gm_judge_growth(const struct gm_window *windows, unsigned count,
					unsigned warmup)
{
	struct gm_growth_result result = {GM_GROWTH_TOO_FEW, 0, 0, 0, 0};
	unsigned late_rises = 0;
	uint64_t largest = 0;

	while (count && windows->max_bytes == 0) {
		windows++;
		count--;
	}
	if (count < warmup || count - warmup < GM_GROWTH_LEAST_WINDOWS)
		return result;
	windows += warmup;
	count -= warmup;
	result.growth = GM_GROWTH_NONE;
	result.windows = count;
	result.first_bytes = windows[0].min_bytes;
	result.last_bytes = windows[count - 1].min_bytes;
	for (unsigned i = 1; i < count; i++) {
		uint64_t before = windows[i - 1].min_bytes, now = windows[i].min_bytes;

		if (now < before)
			return result;
		if (now == before)
			continue;
		result.rises++;
		late_rises += i > (count - 1) - (count - 1 + 2) / 3;
		if (now - before > largest)
			largest = now - before;
	}
	if (2 * result.rises < count - 1 || !late_rises ||
	    largest > (result.last_bytes - result.first_bytes) / 2 ||
	    (count < FEW_WINDOWS && ceiling_falls(windows, count)))
		return result;
	result.growth = GM_GROWTH_RISES;
	return result;
}

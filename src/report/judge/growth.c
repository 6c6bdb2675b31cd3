/*
 * The rules. Of each window the floor counts, its smallest live bytes: a loop's working memory
 * comes and goes above the floor, a leak raises it. Two kinds of growth are told from chance:
 *
 * Left behind: blocks of every stretch of the run are still live, and the floor rose by about as
 * much. Working memory leaves no old survivors, a cache that filled up none of its later windows, a
 * store that replaces its blocks at random many, but without a rise to match.
 *
 * Steady: one buffer that is replaced by a larger one each time leaves nothing behind. Its floor
 * never falls, and goes on rising to the end. n values are in order by chance in 1 of n! cases, so
 * of few windows the ceiling must not fall either, and they must rise by much the same each time.
 *
 * docs/leak-verdicts.md has the reasons for the figures and the error rates.
 */
#include "report/judge/growth.h"

#define MANY_WINDOWS 9 /* in order by chance in 1 of 362,880 cases */
#define FEW_WINDOWS  6 /* fewer in order say nothing, however regular */
/*
 * Survivors that come at random instants of the whole run lie at 0.5 of it on average, those of a
 * cache that fills at random lie at 0.28 where it has three times as long as it takes to be full
 * but for 1/e. Of few survivors the mean tells the two apart far more often than the share of a
 * half or a quarter of the run does.
 */
#define CENTRE 0.38

/* Mean floor of windows [from, to). */
static double mean_floor(const struct gm_window *windows, unsigned from, unsigned to)
{
	double sum = 0;

	for (unsigned i = from; i < to; i++)
		sum += (double)windows[i].min_bytes;
	return sum / (to - from);
}

/*
 * Windows that working memory has left by the end: all but the last two, or more where there are
 * many, or one where there are few.
 */
static unsigned old_windows(unsigned count)
{
	if (count < FEW_WINDOWS)
		return count - 1;
	return count - (count / 4 > 2 ? count / 4 : 2);
}

/*
 * True if `sum` survivors come over the whole run without slowing down: `early` of them in the
 * first half, `latest` in the last quarter. Those of a place that freed nothing (`all`) may also
 * lie at `centre` (0 to 1) on average; among others may be those of a store that replaces its
 * blocks.
 */
static bool evenly(uint64_t sum, uint64_t early, uint64_t latest, double centre, bool all)
{
	if (4 * early >= sum && 3 * (sum - early) >= sum && 8 * latest + 4 >= sum)
		return true;
	return all && 4 * early + 4 >= sum && 8 * latest + 8 >= sum && centre >= CENTRE;
}

bool gm_judge_survivors(const struct gm_survivors *survivors, unsigned count, bool all)
{
	unsigned old = all ? count : old_windows(count), filled = 0;
	uint64_t sum = 0, early = 0, latest = 0, most = 0;
	double places = 0;

	if (count < GM_GROWTH_LEAST_WINDOWS)
		return false;
	for (unsigned i = 0; i < old; i++) {
		filled += survivors[i].count > 0;
		sum += survivors[i].count;
		places += (double)survivors[i].count * (i + 0.5) / old;
		if (2 * i + 1 < old)
			early += survivors[i].count;
		if (4 * (i + 1) > 3 * old)
			latest += survivors[i].count;
		if (survivors[i].count > most)
			most = survivors[i].count;
	}
	return filled >= 3 && 5 * filled >= 2 * old && /* over the whole run */
	       2 * most <= sum &&		       /* not at one moment */
	       evenly(sum, early, latest, places / (double)sum, all);
}

/* The floor rose about as much as was left behind. */
static bool floor_follows(const struct gm_window *windows, const struct gm_survivors *survivors,
			  unsigned count)
{
	unsigned old = old_windows(count), third = count / 3;
	double rise = mean_floor(windows, count - third, count) - mean_floor(windows, 0, third);
	double bytes = 0;

	for (unsigned i = 0; i < old; i++)
		bytes += (double)survivors[i].bytes;
	return rise * 3 >= bytes;
}

/* Steps of the floor that rose; 0 if it ever fell or, of few windows, the ceiling did. */
static unsigned steady_rises(const struct gm_window *windows, unsigned count)
{
	unsigned rises = 0;

	for (unsigned i = 1; i < count; i++) {
		if (windows[i].min_bytes < windows[i - 1].min_bytes ||
		    (count < MANY_WINDOWS && windows[i].max_bytes < windows[i - 1].max_bytes))
			return 0;
		rises += windows[i].min_bytes > windows[i - 1].min_bytes;
	}
	return rises;
}

/*
 * Each third of the steps between windows has its share of the rise: a store that fills up slows
 * down. A buffer that is replaced by one of twice the size has half of the rise in its last step,
 * and little in the first third: there a rise is enough.
 */
static bool rises_throughout(const struct gm_window *windows, unsigned count)
{
	unsigned steps = count - 1;
	uint64_t total = windows[steps].min_bytes - windows[0].min_bytes;
	uint64_t first = windows[steps / 3].min_bytes - windows[0].min_bytes;
	uint64_t middle = windows[steps - steps / 3].min_bytes - windows[steps / 3].min_bytes;
	uint64_t last = windows[steps].min_bytes - windows[steps - steps / 3].min_bytes;

	return first && middle && last >= total / 6;
}

/* Each step is larger than the one before it, and all together are a multiple: a buffer that grows
 * by factors. */
static bool doubles(const struct gm_window *windows, unsigned count)
{
	for (unsigned i = 2; i < count; i++)
		if (windows[i].min_bytes - windows[i - 1].min_bytes <=
		    windows[i - 1].min_bytes - windows[i - 2].min_bytes)
			return false;
	return windows[count - 1].min_bytes / 8 >= windows[0].min_bytes;
}

bool gm_growth_steady(const struct gm_window *windows, unsigned count)
{
	uint64_t least = UINT64_MAX, most = 0, total;
	unsigned rises = steady_rises(windows, count);

	for (unsigned i = 1; i < count; i++) {
		uint64_t step = windows[i].min_bytes - windows[i - 1].min_bytes;

		if (step < least)
			least = step;
		if (step > most)
			most = step;
	}
	if (count < FEW_WINDOWS || rises < FEW_WINDOWS - 1)
		return false;
	total = windows[count - 1].min_bytes - windows[0].min_bytes;
	if (count >= MANY_WINDOWS)
		return most <= total / 8 * 5 && rises_throughout(windows, count);
	return rises == count - 1 && (most <= 3 * least || doubles(windows, count));
}

#define STILL_WINDOWS 2

/*
 * True if nothing changed in a fifth of the windows or more, the last, and the floor rose in every
 * step before: a store has reached its limit. Over working memory, which comes and goes, that
 * cannot be seen.
 */
static bool stalled(const struct gm_window *windows, unsigned count)
{
	uint64_t level = windows[count - 1].last_bytes, slack;
	unsigned rising = count;

	if (count < FEW_WINDOWS || level <= windows[0].min_bytes)
		return false;
	slack = (level - windows[0].min_bytes) / count / 8;
	while (rising && windows[rising - 1].min_bytes + slack >= level &&
	       windows[rising - 1].max_bytes <= level + slack)
		rising--;
	for (unsigned i = 1; i < rising; i++)
		if (windows[i].min_bytes <= windows[i - 1].min_bytes)
			return false;
	return count - rising >= STILL_WINDOWS && 5 * (count - rising) >= count;
}

struct gm_growth_result gm_judge_growth(const struct gm_window *windows,
					const struct gm_survivors *survivors, unsigned count,
					unsigned warmup)
{
	struct gm_growth_result result = {.growth = GM_GROWTH_TOO_FEW};

	while (count && windows->max_bytes == 0) {
		windows++;
		if (survivors)
			survivors++;
		count--;
	}
	if (count < warmup || count - warmup < GM_GROWTH_LEAST_WINDOWS)
		return result;
	windows += warmup;
	if (survivors)
		survivors += warmup;
	count -= warmup;
	result.windows = count;
	result.first_bytes = windows[0].min_bytes;
	result.last_bytes = windows[count - 1].min_bytes;
	result.rose =
		mean_floor(windows, count - count / 3, count) > mean_floor(windows, 0, count / 3);
	for (unsigned i = 1; i < count; i++)
		result.rises += windows[i].min_bytes > windows[i - 1].min_bytes;
	result.left_behind = survivors && gm_judge_survivors(survivors, count, false);
	if ((gm_growth_steady(windows, count) ||
	     (result.left_behind && floor_follows(windows, survivors, count))) &&
	    !stalled(windows, count))
		result.growth = GM_GROWTH_RISES;
	else if (count >= FEW_WINDOWS || steady_rises(windows, count) < count - 1)
		result.growth = GM_GROWTH_NONE;
	return result;
}

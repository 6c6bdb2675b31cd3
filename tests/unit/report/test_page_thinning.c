/*
 * Thinning the page's history: against the totals that a plain replay of the whole history has.
 */
#include "report/render/page/internal.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#define CHANGES 40000u
#define SLOTS	140u
#define MOST	3000u

static uint64_t random_state = 88172645463325252ull;

static uint64_t draw(uint64_t below)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state % below;
}

struct history {
	struct gm_page_changes changes;
	struct gm_page_thinning *thinning;
	uint64_t totals[CHANGES]; /* of device 0 after each change */
	uint64_t others[CHANGES]; /* of device 1 */
	uint64_t highest, highest_other;
};

static uint64_t since(uint64_t total, const struct gm_page_change *change)
{
	return change->came == GM_NONE ? total + change->bytes : total - change->bytes;
}

/* Memory of two devices comes and goes; one change a microsecond. */
static void make(struct history *history)
{
	static uint32_t came[SLOTS];
	uint64_t totals[2] = {0, 0};

	for (unsigned i = 0; i < SLOTS; i++)
		came[i] = GM_NONE;
	*history = (struct history){.thinning = gm_page_thinning_new()};
	for (unsigned i = 0; i < CHANGES; i++) {
		unsigned slot = (unsigned)draw(SLOTS), device = slot % 7 == 0;
		struct gm_page_change *change = gm_page_add_change(&history->changes);

		if (came[slot] != GM_NONE) {
			*change = history->changes.list[came[slot]];
			change->came = came[slot];
			came[slot] = GM_NONE;
		} else {
			change->bytes = 512 * (1 + draw(4096));
			change->address = slot;
			change->index = slot;
			change->device = (int16_t)device;
			came[slot] = i;
		}
		change->number = i;
		change->time_ns = i * 1000ull;
		totals[device] = since(totals[device], change);
		history->totals[i] = totals[0];
		history->others[i] = totals[1];
		if (totals[0] > history->highest)
			history->highest = totals[0];
		if (totals[1] > history->highest_other)
			history->highest_other = totals[1];
		gm_page_thinning_note(history->thinning, change, totals[device]);
	}
}

static void end(struct history *history)
{
	gm_page_thinning_free(history->thinning);
	gm_page_changes_free(&history->changes);
}

/* True after the last change of a moment. */
static bool whole(const struct gm_page_changes *changes, unsigned i)
{
	return i + 1 == changes->count || changes->list[i + 1].number != changes->list[i].number;
}

static void moments_are_true(void **state)
{
	static struct history history;
	uint64_t totals[2] = {0, 0}, highest = 0, highest_other = 0;
	unsigned moments = 0;

	(void)state;
	make(&history);
	assert_true(gm_page_thin(history.thinning, &history.changes, MOST));
	assert_true(history.changes.count <= MOST);
	assert_true(history.changes.thinned);
	for (unsigned i = 0; i < history.changes.count; i++) {
		const struct gm_page_change *change = &history.changes.list[i];

		if (change->came != GM_NONE) {
			assert_true(change->came < i);
			assert_int_equal(history.changes.list[change->came].index, change->index);
			assert_int_equal(history.changes.list[change->came].bytes, change->bytes);
		}
		totals[change->device] = since(totals[change->device], change);
		if (!whole(&history.changes, i))
			continue;
		moments++;
		assert_int_equal(change->time_ns, change->number * 1000);
		assert_int_equal(totals[0], history.totals[change->number]);
		assert_int_equal(totals[1], history.others[change->number]);
		if (totals[0] > highest)
			highest = totals[0];
		if (totals[1] > highest_other)
			highest_other = totals[1];
	}
	assert_true(moments > 4);
	assert_int_equal(highest, history.highest);
	assert_int_equal(highest_other, history.highest_other);
	assert_int_equal(totals[0], history.totals[CHANGES - 1]);
	assert_int_equal(totals[1], history.others[CHANGES - 1]);
	end(&history);
}

/* A stretch whose length is a power of two is a number of whole stretches, however they are
 * merged, so it keeps its highest moment. */
static void stretches_keep_their_peaks(void **state)
{
	static struct history history;
	uint64_t totals[2] = {0, 0}, highest = 0, expected = 0;
	unsigned next = 0;

	(void)state;
	make(&history);
	assert_true(gm_page_thin(history.thinning, &history.changes, 20000));
	for (unsigned first = 0; first + 4096 <= CHANGES; first += 4096) {
		highest = expected = 0;
		for (unsigned i = first; i < first + 4096; i++)
			if (history.totals[i] > expected)
				expected = history.totals[i];
		for (; next < history.changes.count &&
		       history.changes.list[next].number < first + 4096;
		     next++) {
			const struct gm_page_change *change = &history.changes.list[next];

			totals[change->device] = since(totals[change->device], change);
			if (whole(&history.changes, next) && totals[0] > highest)
				highest = totals[0];
		}
		assert_int_equal(highest, expected);
	}
	end(&history);
}

/* What is live at once cannot be thinned. */
static void too_much_is_live(void **state)
{
	static struct history history;

	(void)state;
	make(&history);
	assert_false(gm_page_thin(history.thinning, &history.changes, 10));
	end(&history);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(moments_are_true),
		cmocka_unit_test(stretches_keep_their_peaks),
		cmocka_unit_test(too_much_is_live),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * Marks and copies of the file.
 */
#include "track/marks.h"
#include "account/kinds.h"
#include "track/levels.h"
#include "track/live.h"
#include "track/named_ranges.h"
#include "track/update.h"
#include "track/work.h"

#include <errno.h>
#include <string.h>

#define MARK_NAME_BYTES 255
#define MARKS_KEPT	100000u

static uint64_t sum_levels(unsigned level)
{
	uint64_t sum = 0;
	unsigned slot;

	for (slot = 1; slot < GM_SLOTS; slot++)
		if (gm_totals.levels[slot][level])
			sum += gm_totals.levels[slot][level]->current_bytes;
	return sum;
}

static bool set_before_mark(struct gm_alloc_record *record, uint32_t index, void *data)
{
	struct gm_site_record *site = gm_store_record(GM_TABLE_SITES, record->site);

	(void)index;
	(void)data;
	record->flags |= GM_ALLOC_BEFORE_MARK;
	if (site)
		gm_site_add_stray(&site->figures, record->bytes, gm_copies(record->extra));
	return true;
}

/* Allocations from before the first mark of the program are no leaks at exit. */
static void first_program_mark(void)
{
	gm_live_each(set_before_mark, NULL);
	gm_file->first_mark_serial = gm_file->serial + 1;
}

static void add_mark(uint32_t name_string, enum gm_mark_source source)
{
	struct gm_mark_record *mark = NULL;
	uint32_t index;

	if (gm_file->tables[GM_TABLE_MARKS].count < MARKS_KEPT)
		mark = gm_store_append(GM_TABLE_MARKS, 1, &index);
	if (!mark) {
		gm_file->marks_dropped++;
		return;
	}
	mark->name_string = name_string;
	mark->source = source;
	mark->time_ns = gm_track.now_ns;
	mark->current_bytes = sum_levels(GM_LEVEL_DRIVER);
	mark->torch_bytes = sum_levels(GM_LEVEL_TORCH);
	mark->serial = gm_file->serial;
	gm_store_publish(GM_TABLE_MARKS);
}

/*
 * Returns the string of a mark's name. The marks of a loop share one string, and marks that are not
 * kept have none, so that the file stays bounded.
 */
static uint32_t string_of(const char *name)
{
	uint32_t count = __atomic_load_n(&gm_file->tables[GM_TABLE_MARKS].count, __ATOMIC_ACQUIRE);
	const struct gm_mark_record *last =
		count ? gm_store_record(GM_TABLE_MARKS, count - 1) : NULL;
	const char *known = last ? gm_store_record(GM_TABLE_STRINGS, last->name_string) : NULL;

	if (count >= MARKS_KEPT)
		return GM_NONE;
	if (known && !strncmp(known, name, MARK_NAME_BYTES))
		return last->name_string;
	return gm_store_string(name, MARK_NAME_BYTES);
}

void gm_track_mark(const char *name, enum gm_mark_source source)
{
	uint32_t name_string;

	if (!gm_file)
		return;
	name_string = string_of(name ? name : "");
	gm_update_begin();
	add_mark(name_string, source);
	if (gm_mark_by_program(source) && !gm_file->first_mark_serial)
		first_program_mark();
	if (gm_mark_by_program(source)) {
		gm_track_worked(); /* memory that a test frees before the next mark is its own */
		gm_windows_open_at_mark();
		if (source == GM_MARK_PROGRAM)
			gm_ranges_mark(name);
	}
	gm_update_end();
}

int gm_track_signal(uint32_t name_string, const char *path)
{
	int error;

	if (!gm_file)
		return -ENOSYS;
	if (!gm_update_try_begin())
		return -EAGAIN;
	error = gm_store_try_reserve(GM_TABLE_MARKS);
	if (error == 0)
		add_mark(name_string, GM_MARK_SIGNAL);
	else if (error == -ENOSPC)
		gm_file->marks_dropped++;
	if (error != -EAGAIN) {
		gm_update_pause();
		error = gm_store_copy(path);
		gm_update_resume();
	}
	gm_update_end();
	return error;
}

int gm_track_copy(const char *path)
{
	int error;

	if (!gm_file)
		return -ENOSYS;
	gm_track_lock();
	error = gm_store_copy(path);
	gm_track_unlock();
	return error;
}

/*
 * The writer of checkpoints.
 *
 * For each chunk of the history that is filled one step is made, of at most STEP_BYTES, so that a
 * checkpoint takes at most an eighth of the history's bytes and the lock is held for no more than
 * some 20 microseconds longer. How long a checkpoint takes depends on the size of the tables, how
 * far apart checkpoints are on the length of the history.
 */
#include "track/checkpoint.h"
#include "store/journal.h"
#include "track/state.h"

#include <string.h>

#define STEP_BYTES    8192u
#define STEP_RECORDS  1024u /* that are looked at */
#define LEAST_CHUNKS  16u   /* from the beginning of a checkpoint to that of the next */
#define HISTORY_SHARE 64u   /* or such a part of the history, if that is more */

/* Tables in which a record that found no room is missing in a history, too, or in the figures. */
#define NEEDED_TABLES                                                                              \
	(1ull << GM_TABLE_ALLOCS | 1ull << GM_TABLE_LEVELS | 1ull << GM_TABLE_USAGE |              \
	 1ull << GM_TABLE_TORCH | 1ull << GM_TABLE_VMM)

static struct {
	enum gm_checkpoint_part next; /* GM_PART_BEGIN: none is being written */
	uint32_t record;	      /* the next one of the table */
	uint32_t begin, chunk;	      /* chunks: of the beginning, and of the last step */
	uint32_t bytes, records;      /* in this step */
	bool failed;		      /* there was no room */
} writing;

void gm_checkpoint_reset(void)
{
	memset(&writing, 0, sizeof(writing));
}

static void put(enum gm_checkpoint_part part, uint32_t index, const void *record)
{
	uint32_t bytes = gm_journal_part(part, index, record, gm_track.now_ns);

	writing.bytes += bytes;
	writing.failed |= !bytes;
}

/*
 * Returns whether the tables say what a history says when it is played. They do not where PyTorch's
 * own totals took the place of ours, which no history has, or where an allocation found no room.
 */
static bool is_exact(void)
{
	uint32_t i, count = gm_file->tables[GM_TABLE_TORCH].count;

	for (i = 0; i < count; i++) {
		const struct gm_torch_record *torch = gm_store_record(GM_TABLE_TORCH, i);

		if (torch->mismatches)
			return false;
	}
	return !(gm_file->dropped_tables & NEEDED_TABLES);
}

static bool is_live(const void *record)
{
	return (((const struct gm_alloc_record *)record)->state & GM_STATE_MASK) != GM_STATE_EMPTY;
}

static bool was_used(const void *record)
{
	const struct gm_site_record *site = record;

	return site->allocations || site->failures;
}

/* Puts records of a table until the step is over. Returns true at the end of the table. */
static bool put_some(enum gm_table_id table, enum gm_checkpoint_part part,
		     bool (*is_wanted)(const void *))
{
	uint32_t count = gm_file->tables[table].count;

	for (; writing.record < count; writing.record++) {
		const void *record;

		if (writing.bytes >= STEP_BYTES || writing.records++ >= STEP_RECORDS ||
		    writing.failed)
			return false;
		record = gm_store_record(table, writing.record);
		if (is_wanted(record))
			put(part, writing.record, record);
	}
	writing.record = 0;
	return true;
}

static void put_all(enum gm_table_id table, enum gm_checkpoint_part part)
{
	uint32_t i, count = gm_file->tables[table].count;

	for (i = 0; i < count; i++)
		put(part, i, gm_store_record(table, i));
}

/* The totals are few, and have to be of one moment. */
static void put_totals(void)
{
	put_all(GM_TABLE_LEVELS, GM_PART_LEVEL);
	put_all(GM_TABLE_USAGE, GM_PART_USAGE);
	put_all(GM_TABLE_TORCH, GM_PART_TORCH);
	put_all(GM_TABLE_VMM, GM_PART_VMM);
}

static bool is_due(void)
{
	uint32_t chunks = gm_journal_chunks(), apart = chunks / HISTORY_SHARE;

	return chunks - writing.begin >= (apart > LEAST_CHUNKS ? apart : LEAST_CHUNKS) &&
	       gm_journal_checkpoints_left();
}

static void begin(void)
{
	put(GM_PART_BEGIN, 0, NULL);
	writing.begin = gm_journal_chunks() - 1;
	writing.record = 0;
	writing.next = GM_PART_ALLOC;
}

static void put_allocs(void)
{
	if (put_some(GM_TABLE_ALLOCS, GM_PART_ALLOC, is_live)) {
		put_totals();
		writing.next = GM_PART_SITE;
	}
}

/* The windows of these sites are those of now. */
static void put_sites(void)
{
	put(GM_PART_WINDOWS, 0, gm_file);
	if (!put_some(GM_TABLE_SITES, GM_PART_SITE, was_used))
		return;
	put(GM_PART_END, gm_file->tables[GM_TABLE_ALLOCS].count, NULL);
	if (!writing.failed)
		gm_journal_list_checkpoint(writing.begin);
	writing.next = GM_PART_BEGIN;
}

void gm_checkpoint_step(void)
{
	if (gm_journal_chunks() == writing.chunk)
		return;
	writing.chunk = gm_journal_chunks();
	writing.bytes = writing.records = 0;
	writing.failed = false;
	if (!is_exact() || (writing.next == GM_PART_BEGIN && !is_due())) {
		writing.next = GM_PART_BEGIN;
		return;
	}
	if (writing.next == GM_PART_BEGIN)
		begin();
	if (writing.next == GM_PART_ALLOC)
		put_allocs();
	if (writing.next == GM_PART_SITE && writing.bytes < STEP_BYTES)
		put_sites();
	if (writing.failed)
		writing.next = GM_PART_BEGIN;
}

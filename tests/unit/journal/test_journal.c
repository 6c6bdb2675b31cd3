/*
 * The journal's entries and files: what goes in comes out, at every edge of its numbers; what is
 * torn, cut or damaged ends the history where it begins, and is said. Files are made here from the
 * format's functions, not by the writer.
 */
#include "../stack/cmocka_all.h"
#include "account/sizes.h"
#include "report/journal/journal_file.h"
#include "report/journal/replay.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define CHUNKS	3
#define ENTRIES 100

static const struct gm_header owner = {
	.pid = 7, .pid_start_ticks = 8, .started_realtime_ns = 9, .started_monotonic_ns = 10,
	.features = GM_FEATURE_JOURNAL,
};

static struct gm_alloc_record alloc_of(uint64_t i)
{
	return (struct gm_alloc_record){
		.state = GM_STATE_LIVE,
		.site = i % 3 ? (uint32_t)i : GM_NONE,
		.key = i << (i % 50),
		.bytes = 512 * i,
		.time_ns = 1000 * i,
		.stream = i % 5,
		.serial = i + 1,
		.owner = i % 7 ? GM_NONE : (uint32_t)i,
		.references = 1,
		.thread = (uint32_t)(i / 10),
		.flags = i % 2 ? GM_ALLOC_TORCH : 0,
		.space = (uint8_t)(i % GM_SPACES),
		.kind = (uint8_t)(i % GM_KINDS),
		.device = (int16_t)(i % 4) - 1,
		.level = (uint8_t)(i % GM_LEVELS),
		.context = i % 2 ? GM_NONE : 3,
		.physical_bytes = i % GM_LEVELS ? 0 : 4096 * i,
	};
}

static void same_alloc(const struct gm_alloc_record *a, const struct gm_alloc_record *b)
{
	assert_int_equal(a->site, b->site);
	assert_int_equal(a->key, b->key);
	assert_int_equal(a->bytes, b->bytes);
	assert_int_equal(a->time_ns, b->time_ns);
	assert_int_equal(a->stream, b->stream);
	assert_int_equal(a->serial, b->serial);
	assert_int_equal(a->owner, b->owner);
	assert_int_equal(a->thread, b->thread);
	assert_int_equal(a->flags, b->flags);
	assert_int_equal(a->space, b->space);
	assert_int_equal(a->kind, b->kind);
	assert_int_equal(a->device, b->device);
	assert_int_equal(a->level, b->level);
	assert_int_equal(a->context, b->context);
	if (a->level == GM_LEVEL_DRIVER)
		assert_int_equal(a->physical_bytes, b->physical_bytes);
}

/* What does not take part in an entry is as large as it can be. */
static void largest(void **unused)
{
	const struct gm_alloc_record alloc = {
		.site = UINT32_MAX - 1,
		.key = UINT64_MAX,
		.bytes = UINT64_MAX,
		.time_ns = UINT64_MAX,
		.stream = UINT64_MAX,
		.serial = UINT64_MAX,
		.owner = UINT32_MAX - 1,
		.thread = UINT32_MAX,
		.flags = UINT16_MAX,
		.space = GM_SPACES - 1,
		.kind = GM_KINDS - 1,
		.device = INT16_MAX,
		.level = 0,
		.context = UINT32_MAX,
		.physical_bytes = 1,
	};
	const struct gm_event_record event = {
		.time_ns = UINT64_MAX, .key = UINT64_MAX, .bytes = UINT64_MAX, .serial = 1,
		.site = UINT32_MAX - 1, .stack = UINT32_MAX - 1, .thread = UINT32_MAX,
		.function = UINT16_MAX - 1, .op = GM_OPS - 1, .kind = GM_KINDS - 1,
		.device = INT16_MAX, .level = GM_LEVELS - 1, .space = GM_SPACES - 1,
		.error = INT32_MIN, .stream = UINT64_MAX,
	};
	struct gm_journal_state put, got;
	struct gm_journal_entry entry;
	uint8_t bytes[256], *end;

	(void)unused;
	gm_journal_begin(&put, 0, 0);
	gm_journal_begin(&got, 0, 0);
	end = gm_journal_put_add(&put, bytes, UINT32_MAX - 1, &alloc, 0);
	assert_true(end - bytes <= GM_JOURNAL_ENTRY_BYTES);
	assert_ptr_equal(gm_journal_get(&got, bytes, end, &entry), end);
	same_alloc(&entry.alloc, &alloc);
	gm_journal_begin(&put, 0, 0);
	gm_journal_begin(&got, 0, 0);
	end = gm_journal_put_call(&put, bytes, &event);
	assert_true(end - bytes <= GM_JOURNAL_ENTRY_BYTES);
	assert_ptr_equal(gm_journal_get(&got, bytes, end, &entry), end);
	assert_memory_equal(&entry.event, &event, sizeof(event));
}

static struct gm_site_record largest_site(void)
{
	struct gm_site_record site;

	memset(&site, 0xff, sizeof(site));
	site.window_current = GM_WINDOWS - 1;
	return site;
}

/* Parts of a checkpoint, with the largest numbers and with the smallest. */
static void parts(void **unused)
{
	static const struct gm_header windows = {.serial = UINT64_MAX,
						 .window_current = GM_WINDOWS - 1,
						 .window_start_ns = {1, UINT64_MAX, 3}};
	const struct gm_site_record site = largest_site(), none = {.live_bytes = 0};
	const struct gm_alloc_record alloc = alloc_of(6), first = alloc_of(0);
	const struct {
		enum gm_checkpoint_part part;
		const void *record;
	} cases[] = {{GM_PART_BEGIN, NULL}, {GM_PART_ALLOC, &alloc}, {GM_PART_ALLOC, &first},
		     {GM_PART_SITE, &site}, {GM_PART_SITE, &none},   {GM_PART_WINDOWS, &windows},
		     {GM_PART_END, NULL}};

	(void)unused;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		static struct gm_journal_entry entry;
		struct gm_journal_state put, got;
		uint8_t bytes[2 * GM_JOURNAL_PART_BYTES], *end;

		gm_journal_begin(&put, 0, 0);
		end = gm_journal_put_part(&put, bytes, cases[i].part, UINT32_MAX - i,
					  cases[i].record, UINT64_MAX);
		assert_true(end - bytes <= GM_JOURNAL_PART_BYTES);
		for (size_t part = 0; part <= (size_t)(end - bytes); part++) {
			uint8_t *copy = malloc(part + 1);

			memcpy(copy, bytes, part);
			gm_journal_begin(&got, 0, 0);
			assert_int_equal(gm_journal_get(&got, copy, copy + part, &entry) != NULL,
					 part == (size_t)(end - bytes));
			free(copy);
		}
		assert_int_equal(entry.what, GM_JOURNAL_PART);
		assert_int_equal(entry.record.part, cases[i].part);
		assert_int_equal(entry.record.index, UINT32_MAX - i);
		assert_int_equal(entry.event.time_ns, UINT64_MAX);
		if (cases[i].part == GM_PART_ALLOC)
			same_alloc(&entry.record.of.alloc, cases[i].record);
		if (cases[i].record == &site) {
			assert_int_equal(entry.record.of.site.live_bytes, UINT64_MAX);
			assert_int_equal(entry.record.of.site.failed_frees, UINT32_MAX);
			assert_memory_equal(entry.record.of.site.windows, site.windows,
					    sizeof(site.windows));
		}
		if (cases[i].record == &windows)
			assert_memory_equal(entry.record.of.windows.window_start_ns,
					    windows.window_start_ns,
					    sizeof(windows.window_start_ns));
	}
}

/* Levels, kinds and windows that do not exist are damage. */
static void unknown_parts(void **unused)
{
	struct gm_alloc_record alloc = alloc_of(6);
	const struct gm_level_record level = {.level = GM_LEVELS};
	const struct gm_usage_record usage = {.kind = GM_KINDS};
	const struct {
		enum gm_checkpoint_part part;
		const void *record;
	} cases[] = {{GM_PART_ALLOC, &alloc}, {GM_PART_LEVEL, &level}, {GM_PART_USAGE, &usage}};

	(void)unused;
	alloc.space = GM_SPACES;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		static struct gm_journal_entry entry;
		struct gm_journal_state put, got;
		uint8_t bytes[GM_JOURNAL_PART_BYTES], *end;

		gm_journal_begin(&put, 0, 0);
		gm_journal_begin(&got, 0, 0);
		end = gm_journal_put_part(&put, bytes, cases[i].part, 0, cases[i].record, 1);
		assert_null(gm_journal_get(&got, bytes, end, &entry));
	}
}

/* No prefix of an entry is one, and none is read beyond its end. */
static void prefixes(void **unused)
{
	struct gm_journal_state put;
	uint8_t bytes[256], *end;
	uint64_t i;

	(void)unused;
	for (i = 0; i < ENTRIES; i++) {
		struct gm_alloc_record alloc = alloc_of(i);

		gm_journal_begin(&put, 0, 0);
		end = gm_journal_put_add(&put, bytes, (uint32_t)i, &alloc, 0);
		for (size_t part = 0; part < (size_t)(end - bytes); part++) {
			struct gm_journal_state got;
			struct gm_journal_entry entry;
			uint8_t *copy = malloc(part + 1);

			memcpy(copy, bytes, part);
			gm_journal_begin(&got, 0, 0);
			assert_null(gm_journal_get(&got, copy, copy + part, &entry));
			free(copy);
		}
	}
}

/* ---- files ---- */

struct file {
	struct gm_journal_header header;
	union {
		struct gm_journal_chunk head;
		uint8_t bytes[GM_JOURNAL_CHUNK_BYTES];
	} chunks[CHUNKS];
};

/* Each chunk adds ENTRIES allocations and drops every second; the last entry of all is a call. */
static void make(struct file *file)
{
	struct gm_journal_state state;
	uint64_t i = 0, serial = 0;

	memset(file, 0, sizeof(*file));
	file->header = (struct gm_journal_header){
		.magic = GM_JOURNAL_MAGIC, .byte_order = GM_BYTE_ORDER, .format_version = 1,
		.oldest_version = 1, .header_bytes = sizeof(file->header),
		.chunk_bytes = GM_JOURNAL_CHUNK_BYTES, .pid = 7, .pid_start_ticks = 8,
		.started_realtime_ns = 9, .started_monotonic_ns = 10, .chunk_count = CHUNKS,
	};
	for (unsigned c = 0; c < CHUNKS; c++) {
		uint8_t *to = file->chunks[c].bytes + sizeof(struct gm_journal_chunk);
		uint64_t entries = 0, last = i + ENTRIES;

		gm_journal_begin(&state, i * 1000, serial);
		file->chunks[c].head = (struct gm_journal_chunk){
			.magic = GM_JOURNAL_CHUNK_MAGIC, .number = c, .base_ns = i * 1000,
			.base_serial = serial};
		for (; i < last; i++) {
			struct gm_alloc_record alloc = alloc_of(i);

			to = gm_journal_put_add(
				&state, to, (uint32_t)i, &alloc,
				gm_driver_bytes(alloc.level, alloc.kind, alloc.bytes));
			entries++;
			if (i % 2) {
				to = gm_journal_put_drop(&state, to, (uint32_t)i, alloc.time_ns, 5);
				entries++;
			}
		}
		serial = state.serial;
		file->chunks[c].head.filled =
			entries << 32 |
			(uint64_t)(to - file->chunks[c].bytes - sizeof(struct gm_journal_chunk));
	}
}

static struct gm_journal_file *open_made(const struct file *file, size_t bytes,
					 const struct gm_header *of, char why[256])
{
	int fd = memfd_create("journal", MFD_CLOEXEC);

	assert_true(fd >= 0 && write(fd, file, bytes) == (ssize_t)bytes);
	*why = '\0';
	return gm_journal_from(fd, of, "made", why, 256);
}

/* Additions and drops that can be read; what is said of the rest in `damage`. */
static unsigned read_all(const struct file *file, size_t bytes, char damage[64])
{
	char why[256];
	struct gm_journal_file *journal = open_made(file, bytes, &owner, why);
	struct gm_journal_entry entry;
	struct gm_replay replay = {0};
	unsigned count = 0, live = 0;

	assert_non_null(journal);
	for (; gm_journal_next(journal, &entry); count++) {
		if (entry.what == GM_JOURNAL_ADD) {
			struct gm_alloc_record alloc = alloc_of(entry.index);

			same_alloc(&entry.alloc, &alloc);
		}
		gm_replay_apply(&replay, &entry);
	}
	assert_int_equal(replay.odd, 0);
	for (uint32_t i = 0; i < replay.count; i++)
		live += replay.records[i].state == GM_STATE_LIVE;
	assert_true(live * 3 >= count); /* of each three entries two added, one dropped */
	snprintf(damage, 64, "%s", gm_journal_damage(journal) ? gm_journal_damage(journal) : "");
	gm_replay_free(&replay);
	gm_journal_close(journal);
	return count;
}

static struct file *fresh(void)
{
	static struct file file;

	make(&file);
	return &file;
}

static void whole(void **unused)
{
	char damage[64];

	(void)unused;
	assert_int_equal(read_all(fresh(), sizeof(struct file), damage), CHUNKS * ENTRIES * 3 / 2);
	assert_string_equal(damage, "");
}

/* What a killed process was writing lies behind what it had counted. */
static void torn(void **unused)
{
	struct file *file = fresh();
	uint8_t *end = file->chunks[2].bytes + sizeof(struct gm_journal_chunk) +
		       (uint32_t)file->chunks[2].head.filled;
	char damage[64];

	(void)unused;
	memset(end, 0xff, 40);
	assert_int_equal(read_all(file, sizeof(*file), damage), CHUNKS * ENTRIES * 3 / 2);
	assert_string_equal(damage, "");
}

static void damaged(void **unused)
{
	struct file *file = fresh();
	char damage[64];

	(void)unused;
	file->chunks[1].head.number = 7;
	assert_int_equal(read_all(file, sizeof(*file), damage), ENTRIES * 3 / 2);
	assert_string_equal(damage, "has a damaged part");
	file = fresh();
	file->chunks[2].head.filled += 3; /* more bytes than its entries have */
	assert_int_equal(read_all(file, sizeof(*file), damage), CHUNKS * ENTRIES * 3 / 2);
	assert_string_equal(damage, "has a damaged part");
	file = fresh();
	file->chunks[1].head.filled = UINT64_MAX;
	assert_int_equal(read_all(file, sizeof(*file), damage), ENTRIES * 3 / 2);
	assert_string_equal(damage, "has a damaged part");
}

static void cut(void **unused)
{
	char damage[64];

	(void)unused;
	assert_int_equal(read_all(fresh(), sizeof(struct file) - GM_JOURNAL_CHUNK_BYTES, damage),
			 2 * ENTRIES * 3 / 2);
	assert_string_equal(damage, "is cut short");
	assert_int_equal(read_all(fresh(), sizeof(struct gm_journal_header) + 40, damage), 0);
	assert_string_equal(damage, "is cut short");
}

static void refused(void **unused)
{
	struct gm_header other = owner;
	struct file *file = fresh();
	char why[256];

	(void)unused;
	other.pid_start_ticks++;
	assert_null(open_made(file, sizeof(*file), &other, why));
	assert_non_null(strstr(why, "another process"));
	file->header.byte_order = __builtin_bswap32(GM_BYTE_ORDER);
	assert_null(open_made(file, sizeof(*file), &owner, why));
	assert_non_null(strstr(why, "byte order"));
	file = fresh();
	file->header.oldest_version = GM_JOURNAL_VERSION + 1;
	assert_null(open_made(file, sizeof(*file), &owner, why));
	assert_non_null(strstr(why, "newer format"));
	assert_null(open_made(file, 20, &owner, why));
	assert_null(open_made(file, 0, &owner, why));
	assert_non_null(strstr(why, "is no history"));
}

/* Numbers far beyond what was added are damage, not memory to be taken. */
static void far_number(void **unused)
{
	struct gm_journal_entry entry = {.what = GM_JOURNAL_ADD, .index = UINT32_MAX - 1};
	struct gm_replay replay = {0};

	(void)unused;
	entry.alloc = alloc_of(1);
	assert_null(gm_replay_apply(&replay, &entry).added);
	entry.what = GM_JOURNAL_DROP;
	assert_null(gm_replay_apply(&replay, &entry).removed);
	assert_int_equal(replay.odd, 2);
	assert_int_equal(replay.room, 0);
}

/* ---- checkpoints ---- */

#define CHECKPOINT_NS 50000u /* of its parts, in chunk 1 */
#define LATE_NS	      100000u

struct writing {
	struct file *file;
	struct gm_journal_state state;
	unsigned chunk;
	uint8_t *to;
	uint64_t entries;
};

static void begin_chunk(struct writing *at, unsigned chunk, uint64_t time_ns)
{
	struct gm_journal_chunk *head = &at->file->chunks[chunk].head;

	*head = (struct gm_journal_chunk){.magic = GM_JOURNAL_CHUNK_MAGIC,
					  .number = chunk,
					  .base_ns = time_ns,
					  .base_serial = at->state.serial};
	at->chunk = chunk;
	at->to = (uint8_t *)(head + 1);
	at->entries = 0;
	gm_journal_begin(&at->state, time_ns, at->state.serial);
}

static void wrote(struct writing *at, uint8_t *end)
{
	struct gm_journal_chunk *head = &at->file->chunks[at->chunk].head;

	at->to = end;
	head->filled = ++at->entries << 32 | (uint64_t)(end - (uint8_t *)(head + 1));
}

static void write_add(struct writing *at, uint32_t number)
{
	struct gm_alloc_record alloc = alloc_of(number);

	wrote(at, gm_journal_put_add(&at->state, at->to, number, &alloc,
				     gm_driver_bytes(alloc.level, alloc.kind, alloc.bytes)));
}

static void write_drop(struct writing *at, uint32_t number)
{
	wrote(at, gm_journal_put_drop(&at->state, at->to, number, at->state.time_ns, 5));
}

static void write_part(struct writing *at, enum gm_checkpoint_part part, uint32_t number)
{
	struct gm_alloc_record alloc = alloc_of(number);

	wrote(at, gm_journal_put_part(&at->state, at->to, part, number, &alloc, CHECKPOINT_NS));
}

/*
 * Chunk 0 adds 0 to 49. Chunk 1 is a checkpoint during which 10, which it has told of, and 40,
 * which it has not, are dropped, and 50 is added; 49 comes before the lower ones. Chunk 2 drops 0.
 */
static struct file *checkpointed(void)
{
	struct file *file = fresh();
	struct writing at = {.file = file};
	uint32_t i;

	memset(file->chunks, 0, sizeof(file->chunks));
	file->header.oldest_version = file->header.format_version = GM_JOURNAL_VERSION;
	file->header.checkpoints = 1;
	file->header.checkpoint[0] = 1ull << 32 | 1;
	begin_chunk(&at, 0, 0);
	for (i = 0; i < 50; i++)
		write_add(&at, i);
	begin_chunk(&at, 1, CHECKPOINT_NS);
	write_part(&at, GM_PART_BEGIN, 0);
	write_part(&at, GM_PART_ALLOC, 49);
	for (i = 0; i < 25; i++)
		write_part(&at, GM_PART_ALLOC, i);
	write_drop(&at, 10);
	write_drop(&at, 40);
	write_add(&at, 50);
	for (i = 25; i < 49; i++)
		if (i != 40)
			write_part(&at, GM_PART_ALLOC, i);
	write_part(&at, GM_PART_ALLOC, 50);
	write_part(&at, GM_PART_END, 51);
	begin_chunk(&at, 2, LATE_NS);
	write_drop(&at, 0);
	return file;
}

/* Plays what follows a moment's checkpoint; returns how many entries that was. `damage`: it may be
 * damaged, and was. */
static unsigned resume(const struct file *file, uint64_t at_ns, struct gm_replay *replay,
		       bool *damage)
{
	static struct gm_journal_entry entry;
	char why[256];
	struct gm_journal_file *journal = open_made(file, sizeof(*file), &owner, why);
	unsigned count = 0;

	assert_non_null(journal);
	gm_journal_resume(journal, at_ns);
	for (; gm_journal_next(journal, &entry); count++) {
		gm_replay_apply(replay, &entry);
		if (entry.what != GM_JOURNAL_PART)
			continue;
		if (entry.record.part == GM_PART_BEGIN)
			gm_replay_begin(replay, 100);
		else if (entry.record.part == GM_PART_ALLOC)
			gm_replay_restore(replay, entry.record.index, &entry.record.of.alloc);
		else
			gm_replay_end(replay, entry.record.index);
	}
	if (damage)
		*damage = gm_journal_damage(journal) != NULL;
	else
		assert_null(gm_journal_damage(journal));
	gm_journal_close(journal);
	return count;
}

static void checkpoint(void **unused)
{
	struct gm_replay whole_run = {0}, late = {0};
	const struct file *file = checkpointed();

	(void)unused;
	assert_int_equal(resume(file, LATE_NS - 1, &whole_run, NULL),
			 50 + 3 + 1); /* not complete then */
	assert_int_equal(resume(file, LATE_NS, &late, NULL), 1 + 50 + 3 + 1 + 1);
	assert_int_equal(whole_run.odd, 0);
	assert_int_equal(late.odd, 0);
	assert_false(late.partial);
	assert_int_equal(late.count, 51);
	assert_int_equal(whole_run.count, 51);
	for (uint32_t i = 0; i < 51; i++) {
		assert_int_equal(late.records[i].state, whole_run.records[i].state);
		if (late.records[i].state != GM_STATE_EMPTY)
			same_alloc(&late.records[i], &whole_run.records[i]);
		assert_int_equal(late.records[i].mappings, whole_run.records[i].mappings);
	}
	gm_replay_free(&whole_run);
	gm_replay_free(&late);
}

/* One that a killed process did not finish is in no list; a damaged list leads nowhere. */
static void lists(void **unused)
{
	struct gm_replay replay = {0};
	struct file *file = checkpointed();
	bool damage = false;

	(void)unused;
	file->header.checkpoints = 0;
	assert_int_equal(resume(file, LATE_NS, &replay, NULL), 50 + 3 + 1);
	file->header.checkpoints = GM_JOURNAL_CHECKPOINTS + 1;
	gm_replay_free(&replay);
	assert_int_equal(resume(file, LATE_NS, &replay, NULL), 50 + 3 + 1);
	file->header.checkpoints = 1;
	file->header.checkpoint[0] = UINT64_MAX;
	gm_replay_free(&replay);
	assert_int_equal(resume(file, LATE_NS, &replay, NULL), 50 + 3 + 1);
	file->header.checkpoint[0] = 7ull << 32 | 1;
	gm_replay_free(&replay);
	assert_int_equal(resume(file, LATE_NS, &replay, NULL), 50 + 3 + 1);
	file->header.checkpoint[0] = 0ull << 32 | 1; /* none begins there */
	gm_replay_free(&replay);
	assert_int_equal(resume(file, LATE_NS, &replay, &damage), 0);
	assert_true(damage);
	gm_replay_free(&replay);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(largest),    cmocka_unit_test(prefixes),
		cmocka_unit_test(whole),      cmocka_unit_test(torn),
		cmocka_unit_test(damaged),    cmocka_unit_test(cut),
		cmocka_unit_test(refused),    cmocka_unit_test(far_number),
		cmocka_unit_test(parts),      cmocka_unit_test(unknown_parts),
		cmocka_unit_test(checkpoint), cmocka_unit_test(lists),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * States of a history in the user's cache: the live allocations and the accounting where a chunk of
 * the history begins, so that a moment is played from the state before it and not from the start.
 * A state is of closed chunks, which never change, so it holds for a process that goes on too. See
 * internal.h.
 */
#include "report/history/internal.h"
#include "report/journal/journal_file.h"
#include "report/support/user_cache.h"
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#define SUFFIX	      ".state"
#define MAGIC	      "GMSTATE" /* 8 bytes with the NUL */
#define VERSION	      1u	/* of the accounting that a state is the result of */
#define BYTES_A_ENTRY 8u	/* of a large state, so that keeping takes a part of the playing */
#define MOST_BYTES    (512ull << 20) /* of a state, unpacked */
#define FILE_BYTES    (128u << 20)
#define ALL_BYTES     (256ull << 20)
#define ZSTD_LEVEL    1

/* A state's file is a zstd frame: this head, the records, the sites' records, struct gm_books. */
struct head {
	char magic[8];
	uint32_t version, layout[3];   /* sizes of the three kinds of record that follow */
	struct gm_journal_chunk chunk; /* the head of the chunk that comes next */
	uint64_t last_ns;	       /* of the last entry before it */
	uint32_t records_count, sites_count;
	uint64_t additions, odd, told;
	struct gm_event_record unmap;
};

static const uint32_t layout[3] = {sizeof(struct gm_alloc_record), sizeof(struct gm_site_record),
				   sizeof(struct gm_books)};

void gm_states_open(struct gm_states *states, struct gm_doc *doc)
{
	const struct gm_journal_header *header = gm_journal_header(doc->journal);

	*states = (struct gm_states){.doc = doc, .directory = -1};
	if (doc->options.symbol_cache && gm_journal_chunk(doc->journal, 0, NULL))
		states->directory = gm_user_cache_open();
	snprintf(states->name, sizeof(states->name), "history-%x-%llx-%llx-%llx.", header->pid,
		 (unsigned long long)header->pid_start_ticks,
		 (unsigned long long)header->started_realtime_ns,
		 (unsigned long long)header->started_monotonic_ns);
}

void gm_states_close(struct gm_states *states)
{
	if (states->directory < 0)
		return;
	if (states->kept)
		gm_user_cache_trim(states->directory, SUFFIX, ALL_BYTES);
	close(states->directory);
}

static void name_of(const struct gm_states *states, uint64_t chunk,
		    char name[GM_USER_CACHE_NAME_BYTES])
{
	snprintf(name, GM_USER_CACHE_NAME_BYTES, "%s%llu%s", states->name,
		 (unsigned long long)chunk, SUFFIX);
}

/* ---- keeping ---- */

struct packing {
	ZSTD_CCtx *zstd;
	ZSTD_outBuffer out;
	bool failed;
};

static void pack(struct packing *packing, const void *data, size_t bytes, ZSTD_EndDirective end)
{
	ZSTD_inBuffer in = {data, bytes, 0};
	size_t left;

	do {
		if (packing->failed)
			return;
		if (packing->out.size - packing->out.pos < ZSTD_CStreamOutSize()) {
			packing->out.size = 2 * packing->out.size + ZSTD_CStreamOutSize();
			packing->out.dst = gm_realloc(packing->out.dst, packing->out.size);
		}
		left = ZSTD_compressStream2(packing->zstd, &packing->out, &in, end);
		packing->failed = ZSTD_isError(left);
	} while (end == ZSTD_e_end ? left : in.pos < in.size);
}

static uint64_t state_bytes(uint32_t records, uint32_t sites)
{
	return (uint64_t)records * layout[0] + (uint64_t)sites * layout[1] + layout[2];
}

static void keep(struct gm_states *states, const struct gm_replay *replay,
		 const struct gm_books *books, const struct gm_journal_chunk *chunk,
		 uint64_t last_ns)
{
	struct packing packing = {.zstd = ZSTD_createCCtx()};
	char name[GM_USER_CACHE_NAME_BYTES];
	struct head head;

	memset(&head, 0, sizeof(head));
	memcpy(head.magic, MAGIC, sizeof(head.magic));
	head.version = VERSION;
	memcpy(head.layout, layout, sizeof(layout));
	head.chunk = *chunk;
	head.last_ns = last_ns;
	head.records_count = replay->count;
	head.sites_count = books->sites_count;
	head.additions = replay->additions;
	head.odd = replay->odd;
	head.told = replay->told;
	head.unmap = replay->unmap;
	if (!packing.zstd)
		return;
	ZSTD_CCtx_setParameter(packing.zstd, ZSTD_c_compressionLevel, ZSTD_LEVEL);
	ZSTD_CCtx_setParameter(packing.zstd, ZSTD_c_checksumFlag, 1);
	pack(&packing, &head, sizeof(head), ZSTD_e_continue);
	pack(&packing, replay->records, (size_t)replay->count * layout[0], ZSTD_e_continue);
	pack(&packing, books->sites, (size_t)books->sites_count * layout[1], ZSTD_e_continue);
	pack(&packing, books, layout[2], ZSTD_e_end);
	name_of(states, chunk->number, name);
	if (!packing.failed && packing.out.pos <= FILE_BYTES)
		gm_user_cache_write(states->directory, name, packing.out.dst, packing.out.pos);
	states->kept = true;
	ZSTD_freeCCtx(packing.zstd);
	free(packing.out.dst);
}

void gm_states_entry(struct gm_states *states, const struct gm_replay *replay,
		     const struct gm_books *books, uint64_t time_ns)
{
	uint64_t bytes = state_bytes(replay->count, books->sites_count);
	struct gm_journal_chunk chunk;

	if (states->directory < 0 || states->entries < bytes / BYTES_A_ENTRY ||
	    !gm_journal_between(states->doc->journal, &chunk))
		return;
	states->entries = 0;
	if (bytes <= MOST_BYTES)
		keep(states, replay, books, &chunk, time_ns);
}

/* ---- resuming ---- */

/* The chunk of the latest kept state before `below` that is not after the moment; 0: none is. */
static uint64_t find(const struct gm_states *states, uint64_t at_ns, uint64_t below)
{
	int fd = openat(states->directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = fd >= 0 ? fdopendir(fd) : NULL;
	size_t length = strlen(states->name);
	struct gm_journal_chunk head;
	const struct dirent *entry;
	uint64_t found = 0;

	while (list && (entry = readdir(list))) {
		unsigned long long chunk;
		char *end;

		if (strncmp(entry->d_name, states->name, length) != 0)
			continue;
		chunk = strtoull(entry->d_name + length, &end, 10);
		if (strcmp(end, SUFFIX) == 0 && chunk > found && chunk < below &&
		    gm_journal_chunk(states->doc->journal, chunk, &head) && head.base_ns <= at_ns)
			found = chunk;
	}
	if (list)
		closedir(list);
	else if (fd >= 0)
		close(fd);
	return found;
}

struct unpacking {
	ZSTD_DCtx *zstd;
	ZSTD_inBuffer in;
};

/* Fills `to`; false if the frame is damaged, or does not hold so much. */
static bool unpack(struct unpacking *unpacking, void *to, size_t bytes, bool last)
{
	ZSTD_outBuffer out = {to, bytes, 0};
	size_t left = 1;

	while (out.pos < out.size || (last && left)) {
		size_t had = out.pos, at = unpacking->in.pos;

		left = ZSTD_decompressStream(unpacking->zstd, &out, &unpacking->in);
		if (ZSTD_isError(left) || (left && out.pos == had && unpacking->in.pos == at))
			return false;
	}
	return true;
}

static bool fits(const struct gm_states *states, const struct head *head,
		 const struct gm_books *books, const struct gm_journal_chunk *chunk)
{
	return memcmp(head->magic, MAGIC, sizeof(head->magic)) == 0 && head->version == VERSION &&
	       memcmp(head->layout, layout, sizeof(layout)) == 0 &&
	       head->chunk.number == chunk->number && head->chunk.base_ns == chunk->base_ns &&
	       head->chunk.base_serial == chunk->base_serial &&
	       head->sites_count <= books->sites_count &&
	       state_bytes(head->records_count, head->sites_count) <= MOST_BYTES &&
	       head->last_ns <= states->doc->header->last_event_ns;
}

/* Windows of a process that goes on are merged, and then a site's window is another one. */
static bool windows_fit(const struct gm_states *states, const struct gm_books *books,
			uint64_t last_ns)
{
	const struct gm_header *header = states->doc->header;

	return books->window < GM_WINDOWS &&
	       header->window_start_ns[books->window] == books->window_from_ns &&
	       gm_moment_window(states->doc, last_ns) == books->window_from_ns;
}

static bool read_state(const struct gm_states *states, struct unpacking *unpacking,
		       const struct gm_journal_chunk *chunk, struct gm_replay *replay,
		       struct gm_books *books)
{
	struct gm_site_record *sites = books->sites;
	uint32_t sites_count = books->sites_count;
	struct head head;
	bool fine;

	if (!unpack(unpacking, &head, sizeof(head), false) || !fits(states, &head, books, chunk))
		return false;
	*replay = (struct gm_replay){
		.records = gm_realloc(NULL, ((size_t)head.records_count + 1) * layout[0]),
		.count = head.records_count,
		.room = head.records_count + 1,
		.additions = head.additions,
		.odd = head.odd,
		.unmap = head.unmap,
		.told = head.told,
	};
	fine = unpack(unpacking, replay->records, (size_t)head.records_count * layout[0], false) &&
	       unpack(unpacking, sites, (size_t)head.sites_count * layout[1], false) &&
	       unpack(unpacking, books, layout[2], true);
	books->sites = sites;
	books->sites_count = sites_count;
	return fine && windows_fit(states, books, head.last_ns);
}

static bool resume(const struct gm_states *states, uint64_t number, struct gm_replay *replay,
		   struct gm_books *books)
{
	struct gm_zone zone = {0};
	struct gm_journal_chunk chunk;
	char name[GM_USER_CACHE_NAME_BYTES];
	struct unpacking unpacking = {0};
	bool fine = false;

	name_of(states, number, name);
	unpacking.in.src =
		gm_user_cache_read(&zone, states->directory, name, FILE_BYTES, &unpacking.in.size);
	if (unpacking.in.src && gm_journal_chunk(states->doc->journal, number, &chunk)) {
		unpacking.zstd = ZSTD_createDCtx();
		fine = unpacking.zstd && read_state(states, &unpacking, &chunk, replay, books);
		ZSTD_freeDCtx(unpacking.zstd);
	}
	gm_zone_free(&zone);
	return fine && gm_journal_seek(states->doc->journal, number);
}

struct gm_books *gm_states_resume(struct gm_states *states, struct gm_replay *replay,
				  uint64_t at_ns)
{
	struct gm_books *books = gm_books_new(states->doc);
	uint64_t chunk = UINT64_MAX;

	gm_journal_rewind(states->doc->journal);
	while (states->directory >= 0 && (chunk = find(states, at_ns, chunk))) {
		if (resume(states, chunk, replay, books))
			return books;
		gm_replay_free(replay);
		books = gm_books_new(states->doc);
	}
	return books;
}

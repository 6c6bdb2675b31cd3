/*
 * Writing the history (journal.h). When the cap is reached or the disk is full it ends there for good:
 * a history with a gap could not be played. What is lost is counted in its header.
 */
#include "store/journal.h"
#include "store/backing.h"
#include "store/journal_code.h"
#include "store/lock.h"
#include "store/place.h"
#include "store/writer.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define ADDRESS_SHARE 8u /* of RLIMIT_AS */
#define MOST_YIELDS   1000u

GM_HOT bool gm_journal_on;

static struct {
	struct gm_lock lock; /* guards the taking of chunks against the end; the rest is the tracker's */
	struct gm_backing backing;
	struct gm_place place;
	uint64_t mapped_bytes;
	uint64_t capacity; /* chunks */
	bool stood_in;
	struct gm_journal_chunk *chunk; /* the open one, NULL: none, or no more */
	uint8_t *at;
	uint64_t entries; /* in it */
	enum gm_journal_loss loss;
	struct gm_journal_state state;
} journal;

static struct gm_journal_header *header(void)
{
	return (struct gm_journal_header *)journal.backing.base;
}

static uint64_t used_bytes(uint64_t chunks)
{
	return GM_HEADER_BYTES + chunks * GM_JOURNAL_CHUNK_BYTES;
}

static struct gm_journal_header describe(uint64_t cap_bytes)
{
	struct gm_journal_header first = {
		.magic = GM_JOURNAL_MAGIC,
		.byte_order = GM_BYTE_ORDER,
		.format_version = GM_JOURNAL_VERSION,
		.oldest_version = GM_JOURNAL_VERSION,
		.header_bytes = GM_HEADER_BYTES,
		.chunk_bytes = GM_JOURNAL_CHUNK_BYTES,
		.pid = gm_file->pid,
		.pid_start_ticks = gm_file->pid_start_ticks,
		.started_realtime_ns = gm_file->started_realtime_ns,
		.started_monotonic_ns = gm_file->started_monotonic_ns,
		.cap_bytes = cap_bytes,
	};

	return first;
}

/* RLIMIT_FSIZE would answer growth beyond it with SIGXFSZ; address space is the program's own. */
static uint64_t clamp_cap(uint64_t cap_bytes)
{
	uint64_t file_limit = gm_limit_of(RLIMIT_FSIZE), share = gm_limit_of(RLIMIT_AS) / ADDRESS_SHARE;

	if (cap_bytes > share)
		cap_bytes = share;
	return cap_bytes > file_limit ? file_limit : cap_bytes;
}

static int create(uint64_t chunks, const struct gm_journal_header *first)
{
	const struct gm_place *beside = gm_store_place();
	int fd, error;

	if (!beside)
		return -EROFS;
	fd = gm_place_create_beside(&journal.place, beside, GM_HISTORY_SUFFIX, first, sizeof(*first));
	if (fd < 0)
		return fd;
	journal.backing.path = journal.place.path;
	error = gm_backing_map(&journal.backing, fd, used_bytes(chunks));
	close(fd);
	if (!error)
		error = gm_backing_grow(&journal.backing, 0, GM_HEADER_BYTES);
	if (!error)
		return 0;
	if (journal.backing.base)
		munmap(journal.backing.base, used_bytes(chunks));
	gm_place_remove(&journal.place);
	return error;
}

int gm_journal_open(uint64_t cap_bytes)
{
	uint64_t cap = clamp_cap(cap_bytes);
	struct gm_journal_header first = describe(cap);
	int error;

	memset(&journal, 0, sizeof(journal));
	if (cap < used_bytes(1))
		return -EFBIG;
	journal.capacity = (cap - GM_HEADER_BYTES) / GM_JOURNAL_CHUNK_BYTES;
	error = create(journal.capacity, &first);
	if (error) {
		memset(&journal, 0, sizeof(journal));
		return error;
	}
	journal.mapped_bytes = used_bytes(journal.capacity);
	madvise(journal.backing.base, journal.mapped_bytes, MADV_DONTFORK);
	memcpy(header(), &first, sizeof(first));
	gm_file->features |= GM_FEATURE_JOURNAL;
	gm_journal_on = true;
	return 0;
}

/* Pages of a chunk that is full are the page cache's business, and no part of the program's size. */
static void leave_chunk(void)
{
	if (journal.chunk)
		madvise(journal.chunk, GM_JOURNAL_CHUNK_BYTES, MADV_DONTNEED);
	journal.chunk = NULL;
}

/* Opens the next chunk; false where there is no more room, now or ever. */
static bool next_chunk(uint64_t time_ns)
{
	uint64_t number = header()->chunk_count, offset = used_bytes(number);
	bool fits = false;

	gm_lock_acquire(&journal.lock);
	leave_chunk();
	if (number >= journal.capacity)
		journal.loss = GM_JOURNAL_CAP;
	else if (gm_backing_grow(&journal.backing, offset, GM_JOURNAL_CHUNK_BYTES) < 0)
		journal.loss = GM_JOURNAL_DISK;
	else
		fits = true;
	if (fits) {
		journal.chunk = (struct gm_journal_chunk *)(journal.backing.base + offset);
		journal.chunk->magic = GM_JOURNAL_CHUNK_MAGIC;
		journal.chunk->number = (uint32_t)number;
		journal.chunk->base_ns = time_ns;
		journal.chunk->base_serial = journal.state.serial;
		journal.at = (uint8_t *)(journal.chunk + 1);
		journal.entries = 0;
		gm_journal_begin(&journal.state, time_ns, journal.state.serial);
		__atomic_store_n(&header()->chunk_count, number + 1, __ATOMIC_RELEASE);
	}
	gm_lock_release(&journal.lock);
	return fits;
}

static void lose(uint64_t time_ns)
{
	if (gm_file->end == GM_END_EXIT)
		return; /* what other threads do while the process ends */
	if (header()->lost++ == 0) {
		header()->lost_from_ns = time_ns;
		header()->loss = journal.loss;
	}
}

/* Room for one entry, or NULL: it is lost, and counted. */
static uint8_t *room(uint64_t time_ns)
{
	const uint8_t *start = (const uint8_t *)journal.chunk;

	if (start && (size_t)(start + GM_JOURNAL_CHUNK_BYTES - journal.at) >= GM_JOURNAL_ENTRY_BYTES)
		return journal.at;
	if (!journal.loss && next_chunk(time_ns))
		return journal.at;
	lose(time_ns);
	return NULL;
}

/* The entry that ends at `end` counts from now on. */
static void publish(uint8_t *end)
{
	uint64_t bytes = (uint64_t)(end - (uint8_t *)(journal.chunk + 1));

	journal.at = end;
	journal.entries++;
	__atomic_store_n(&journal.chunk->filled, journal.entries << 32 | bytes, __ATOMIC_RELEASE);
}

void gm_journal_add(const struct gm_alloc_record *alloc, uint32_t number, uint64_t expected_bytes)
{
	uint8_t *to = room(alloc->time_ns);

	if (to)
		publish(gm_journal_put_add(&journal.state, to, number, alloc, expected_bytes));
}

void gm_journal_drop(uint32_t number, uint64_t time_ns, uint32_t thread)
{
	uint8_t *to = room(time_ns);

	if (to)
		publish(gm_journal_put_drop(&journal.state, to, number, time_ns, thread));
}

void gm_journal_resize(uint32_t number, uint64_t bytes, uint64_t time_ns, uint32_t thread)
{
	uint8_t *to = room(time_ns);

	if (to)
		publish(gm_journal_put_resize(&journal.state, to, number, bytes, time_ns, thread));
}

void gm_journal_call(const struct gm_event_record *event)
{
	uint8_t *to = room(event->time_ns);

	if (to)
		publish(gm_journal_put_call(&journal.state, to, event));
}

/* ---- the end, and forks ---- */

/* No thread takes a chunk from here on; false as in the writer's stop_growth. */
static bool stop_growth(void)
{
	unsigned i;

	for (i = 0; i < MOST_YIELDS; i++) {
		if (gm_lock_try(&journal.lock)) {
			journal.capacity = header()->chunk_count;
			gm_lock_release(&journal.lock);
			return true;
		}
		sched_yield();
	}
	return false;
}

int gm_journal_finish(void)
{
	uint64_t used;
	int fd, error = 0;

	if (!gm_journal_on || !stop_growth())
		return 0;
	fd = gm_backing_open(&journal.backing);
	if (fd < 0)
		return fd;
	used = used_bytes(journal.capacity);
	if (ftruncate(fd, (off_t)used) < 0)
		error = -errno;
	close(fd);
	if (error || gm_file->end == GM_END_EXEC)
		return error;
	mmap(journal.backing.base + used, journal.mapped_bytes - used, PROT_NONE,
	     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
	return gm_place_settle(&journal.place);
}

void gm_journal_resume(void)
{
	int fd;

	if (!gm_journal_on || gm_limit_of(RLIMIT_FSIZE) < journal.mapped_bytes)
		return;
	fd = gm_backing_open(&journal.backing);
	if (fd < 0)
		return;
	if (ftruncate(fd, (off_t)journal.mapped_bytes) == 0 && !header()->lost) {
		journal.capacity = (journal.mapped_bytes - GM_HEADER_BYTES) / GM_JOURNAL_CHUNK_BYTES;
		journal.loss = GM_JOURNAL_WHOLE;
	}
	close(fd);
}

void gm_journal_in_child(void)
{
	void *memory;

	if (!gm_journal_on)
		return;
	memory = mmap(journal.backing.base, journal.mapped_bytes, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
	journal.stood_in = memory != MAP_FAILED;
}

void gm_journal_forget(void)
{
	if (journal.stood_in)
		munmap(journal.backing.base, journal.mapped_bytes);
	gm_journal_on = false;
	memset(&journal, 0, sizeof(journal));
}

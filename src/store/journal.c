/*
 * The writer of the history. If the cap is reached or the disk is full the history ends for good,
 * because one with a gap could not be replayed. Its header counts the entries that were lost.
 */
#include "store/journal.h"
#include "store/backing.h"
#include "store/lock.h"
#include "store/output_path.h"

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
	struct gm_lock lock; /* guards the handing out of chunks against the end; the tracker's lock
				guards the rest */
	struct gm_backing backing;
	struct gm_output_path output;
	struct gm_header *file; /* of the output file */
	uint64_t mapped_bytes;
	uint64_t capacity; /* chunks */
	bool replaced;
	struct gm_journal_chunk
		*chunk;	  /* the open chunk; NULL before the first and after the last */
	uint8_t *at;	  /* position of the next entry */
	uint64_t entries; /* in the open chunk */
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

static void describe(struct gm_journal_header *first, const struct gm_header *file,
		     uint64_t cap_bytes)
{
	*first = (struct gm_journal_header){
		.magic = GM_JOURNAL_MAGIC,
		.byte_order = GM_BYTE_ORDER,
		.format_version = GM_JOURNAL_VERSION,
		.oldest_version = GM_JOURNAL_OLDEST,
		.header_bytes = GM_HEADER_BYTES,
		.chunk_bytes = GM_JOURNAL_CHUNK_BYTES,
		.pid = file->pid,
		.pid_start_ticks = file->pid_start_ticks,
		.started_realtime_ns = file->started_realtime_ns,
		.started_monotonic_ns = file->started_monotonic_ns,
		.cap_bytes = cap_bytes,
	};
}

/*
 * Limits the capacity: growth beyond RLIMIT_FSIZE raises SIGXFSZ, and the program needs its address
 * space.
 */
static uint64_t clamp_cap(uint64_t cap_bytes)
{
	uint64_t file_limit = gm_limit_of(RLIMIT_FSIZE),
		 share = gm_limit_of(RLIMIT_AS) / ADDRESS_SHARE;

	if (cap_bytes > share)
		cap_bytes = share;
	return cap_bytes > file_limit ? file_limit : cap_bytes;
}

static int create(const struct gm_output_path *beside, uint64_t chunks,
		  const struct gm_journal_header *first)
{
	int fd, error;

	if (!beside)
		return -EROFS;
	fd = gm_output_create_beside(&journal.output, beside, GM_HISTORY_SUFFIX, first,
				     sizeof(*first));
	if (fd < 0)
		return fd;
	journal.backing.path = journal.output.path;
	error = gm_backing_map(&journal.backing, fd, used_bytes(chunks), NULL);
	close(fd);
	if (!error)
		error = gm_backing_grow(&journal.backing, 0, GM_HEADER_BYTES);
	if (!error)
		return 0;
	if (journal.backing.base)
		munmap(journal.backing.base, used_bytes(chunks));
	gm_output_remove(&journal.output);
	return error;
}

int gm_journal_open(struct gm_header *file, const struct gm_output_path *beside, uint64_t cap_bytes)
{
	uint64_t cap = clamp_cap(cap_bytes);
	static struct gm_journal_header first; /* the stack may be small */
	int error;

	describe(&first, file, cap);
	memset(&journal, 0, sizeof(journal));
	if (cap < used_bytes(1))
		return -EFBIG;
	journal.capacity = (cap - GM_HEADER_BYTES) / GM_JOURNAL_CHUNK_BYTES;
	error = create(beside, journal.capacity, &first);
	if (error) {
		memset(&journal, 0, sizeof(journal));
		return error;
	}
	journal.mapped_bytes = used_bytes(journal.capacity);
	madvise(journal.backing.base, journal.mapped_bytes, MADV_DONTFORK);
	memcpy(header(), &first, sizeof(first));
	journal.file = file;
	file->features |= GM_FEATURE_JOURNAL;
	gm_journal_on = true;
	return 0;
}

/*
 * Unmaps the pages of a full chunk: they stay in the page cache, and do not count as the program's
 * memory.
 */
static void close_chunk(void)
{
	if (journal.chunk)
		madvise(journal.chunk, GM_JOURNAL_CHUNK_BYTES, MADV_DONTNEED);
	journal.chunk = NULL;
}

/* Opens the next chunk. Returns false if the history ends here. */
static bool open_chunk(uint64_t time_ns)
{
	uint64_t number = header()->chunk_count, offset = used_bytes(number);
	bool fits = false;

	gm_lock_acquire(&journal.lock);
	close_chunk();
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

static void count_lost(uint64_t time_ns)
{
	if (journal.file->end == GM_END_EXIT)
		return; /* threads that still run while the process ends do not count */
	if (header()->lost++ == 0) {
		header()->lost_from_ns = time_ns;
		header()->loss = journal.loss;
	}
}

/* Returns the position of the next entry of at most `bytes`; NULL if the history ends here. */
static uint8_t *find_room(uint64_t time_ns, size_t bytes)
{
	const uint8_t *start = (const uint8_t *)journal.chunk;

	if (start && (size_t)(start + GM_JOURNAL_CHUNK_BYTES - journal.at) >= bytes)
		return journal.at;
	return !journal.loss && open_chunk(time_ns) ? journal.at : NULL;
}

/* Returns the position of the next entry, or NULL after counting it as lost. */
static uint8_t *reserve(uint64_t time_ns)
{
	uint8_t *to = find_room(time_ns, GM_JOURNAL_ENTRY_BYTES);

	if (!to)
		count_lost(time_ns);
	return to;
}

/* Makes the entry that ends at `end` visible to readers. */
static void publish(uint8_t *end)
{
	uint64_t bytes = (uint64_t)(end - (uint8_t *)(journal.chunk + 1));

	journal.at = end;
	journal.entries++;
	__atomic_store_n(&journal.chunk->filled, journal.entries << 32 | bytes, __ATOMIC_RELEASE);
}

void gm_journal_add(const struct gm_alloc_record *alloc, uint32_t index, uint64_t expected_bytes)
{
	uint8_t *to = reserve(alloc->time_ns);

	if (to)
		publish(gm_journal_put_add(&journal.state, to, index, alloc, expected_bytes));
}

void gm_journal_drop(uint32_t index, uint64_t time_ns, uint32_t thread)
{
	uint8_t *to = reserve(time_ns);

	if (to)
		publish(gm_journal_put_drop(&journal.state, to, index, time_ns, thread));
}

void gm_journal_resize(uint32_t index, uint64_t bytes, uint64_t time_ns, uint32_t thread)
{
	uint8_t *to = reserve(time_ns);

	if (to)
		publish(gm_journal_put_resize(&journal.state, to, index, bytes, time_ns, thread));
}

/* Readers have to be of at least this version. */
static void need_version(uint32_t version)
{
	if (header()->oldest_version < version)
		header()->oldest_version = version;
}

void gm_journal_call(const struct gm_event_record *event)
{
	uint8_t *to = reserve(event->time_ns);

	if (!to)
		return;
	if (event->op > GM_OP_LAUNCH)
		need_version(GM_JOURNAL_TRACED);
	publish(gm_journal_put_call(&journal.state, to, event));
}

/* ---- checkpoints ---- */

uint32_t gm_journal_part(enum gm_checkpoint_part part, uint32_t index, const void *record,
			 uint64_t time_ns)
{
	uint8_t *to = find_room(time_ns, GM_JOURNAL_PART_BYTES), *end;

	if (!to)
		return 0;
	need_version(GM_JOURNAL_VERSION);
	end = gm_journal_put_part(&journal.state, to, part, index, record, time_ns);
	publish(end);
	return (uint32_t)(end - to);
}

uint32_t gm_journal_chunks(void)
{
	return (uint32_t)header()->chunk_count;
}

uint32_t gm_journal_checkpoints_left(void)
{
	return GM_JOURNAL_CHECKPOINTS - header()->checkpoints;
}

void gm_journal_list_checkpoint(uint32_t begin)
{
	uint32_t count = header()->checkpoints;

	header()->checkpoint[count] = (uint64_t)begin << 32 | (gm_journal_chunks() - 1);
	__atomic_store_n(&header()->checkpoints, count + 1, __ATOMIC_RELEASE);
}

/* ---- the end, and forks ---- */

/*
 * Stops the handing out of chunks. Returns false if the lock cannot be taken, as stop_growth of
 * writer.c does.
 */
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
	if (error)
		return error;
	mmap(journal.backing.base + used, journal.mapped_bytes - used, PROT_NONE,
	     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
	return gm_output_settle(&journal.output);
}

void gm_journal_stop(void)
{
	if (!gm_journal_on)
		return;
	gm_journal_finish();
	gm_journal_on = false;
}

void gm_journal_in_child(void)
{
	void *memory;

	if (!gm_journal_on)
		return;
	memory = mmap(journal.backing.base, journal.mapped_bytes, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
	journal.replaced = memory != MAP_FAILED;
}

void gm_journal_forget(void)
{
	if (journal.replaced)
		munmap(journal.backing.base, journal.mapped_bytes);
	gm_journal_on = false;
	memset(&journal, 0, sizeof(journal));
}

/*
 * The writer of the output file: one sparse file, which is mapped once at its full capacity and
 * gets its disk blocks chunk by chunk (backing.h).
 */
#include "store/header.h"
#include "store/writer.h"
#include "store/backing.h"
#include "store/syscall_guard.h"
#include "store/journal.h"
#include "store/lock.h"
#include "store/output_path.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIGURE_CHUNKS	 16u
#define RETRY_AFTER	 1024u /* calls that find a table full, before the disk is tried again */
#define FEW_CHUNKS	 24u /* the tables that nearly every program uses take seventeen */
#define ADDRESS_SHARE	 16u /* of RLIMIT_AS; the program needs the rest */
#define MOST_YIELDS	 1000u
#define MAX_STRING_BYTES 4096u
#define FIRST_BYTES	 8192u /* of a table's first chunk that get disk blocks at first */

static const uint32_t record_bytes[GM_TABLES_NOW] = {
	[GM_TABLE_STRINGS] = 1,
	[GM_TABLE_MODULES] = sizeof(struct gm_module_record),
	[GM_TABLE_FRAMES] = sizeof(struct gm_frame_record),
	[GM_TABLE_STACK_FRAMES] = sizeof(uint32_t),
	[GM_TABLE_STACKS] = sizeof(struct gm_stack_record),
	[GM_TABLE_SITES] = sizeof(struct gm_site_record),
	[GM_TABLE_ALLOCS] = sizeof(struct gm_alloc_record),
	[GM_TABLE_DEVICES] = sizeof(struct gm_device_record),
	[GM_TABLE_LEVELS] = sizeof(struct gm_level_record),
	[GM_TABLE_USAGE] = sizeof(struct gm_usage_record),
	[GM_TABLE_POOLS] = sizeof(struct gm_pool_record),
	[GM_TABLE_ERRORS] = sizeof(struct gm_error_record),
	[GM_TABLE_OOMS] = sizeof(struct gm_oom_record),
	[GM_TABLE_OOM_SITES] = sizeof(struct gm_oom_site_record),
	[GM_TABLE_OOM_BLOCKS] = sizeof(struct gm_oom_block_record),
	[GM_TABLE_IMPLICIT] = sizeof(struct gm_implicit_record),
	[GM_TABLE_MARKS] = sizeof(struct gm_mark_record),
	[GM_TABLE_TIMELINE] = sizeof(struct gm_timeline_record),
	[GM_TABLE_EVENTS] = sizeof(struct gm_event_record),
	[GM_TABLE_LEDGER] = sizeof(struct gm_ledger_record),
	[GM_TABLE_COSTS] = sizeof(struct gm_cost_record),
	[GM_TABLE_RETRIES] = sizeof(struct gm_retry_record),
	[GM_TABLE_TORCH] = sizeof(struct gm_torch_record),
	[GM_TABLE_VMM] = sizeof(struct gm_vmm_record),
	[GM_TABLE_CONTEXTS] = sizeof(struct gm_context_record),
	[GM_TABLE_LEDGER_HISTORY] = sizeof(struct gm_ledger_record),
	[GM_TABLE_FUNCTIONS] = sizeof(struct gm_function_record),
	[GM_TABLE_FREED_EXPORTS] = sizeof(struct gm_freed_export_record),
	[GM_TABLE_PEAKS] = sizeof(struct gm_peak_record),
	[GM_TABLE_PEAK_BLOCKS] = sizeof(struct gm_peak_block_record),
	[GM_TABLE_RANGES] = sizeof(struct gm_range_record),
	[GM_TABLE_CAPTURES] = sizeof(struct gm_capture_record),
};

#define FIRST_CHUNKS 4u

struct table {
	char **chunks; /* addresses of the table's chunks, in order, with a capacity for all chunks
			*/
	uint64_t reciprocal; /* of per_chunk, because a division takes many times as long */
	uint32_t per_chunk;  /* records in a chunk */
	uint32_t record_bytes;
	uint32_t chunk_count;
	uint32_t backed; /* records that the chunks have disk blocks for */
	uint32_t next; /* records handed out; the header has the number of those published */
	uint32_t refused; /* calls that are still told at once that the table is full */
	char *first[FIRST_CHUNKS]; /* a copy of the first addresses, in the cache line of the fields
				      above */
} __attribute__((aligned(64)));

GM_HOT_EVENT struct gm_header *gm_file;

static struct {
	struct gm_lock
		lock; /* guards the directory, the handing out of chunks and the string table */
	struct table tables[GM_TABLES_NOW];
	struct gm_directory_entry *directory;
	struct gm_backing backing;
	uint64_t mapped_bytes;
	size_t address_bytes;	   /* of the tables' chunk addresses */
	uint64_t data_offset;	   /* of chunk 0 */
	uint32_t capacity;	   /* chunks */
	bool private_memory;	   /* the fallback, of which nothing is on disk before the end */
	bool replaced;		   /* gm_store_in_child mapped memory where the parent's file was */
	char asked[GM_PATH_BYTES]; /* the path that was asked for; `output` has the one in use */
	struct gm_output_path output;
} store;

static int back(uint64_t offset, uint64_t bytes)
{
	return store.private_memory ? 0 : gm_backing_grow(&store.backing, offset, bytes);
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
	if (cap_bytes < GM_MIN_FILE_BYTES)
		cap_bytes = GM_MIN_FILE_BYTES;
	if (cap_bytes > file_limit)
		cap_bytes = file_limit;
	return cap_bytes / GM_CHUNK_BYTES * GM_CHUNK_BYTES;
}

static int map_file(uint64_t bytes)
{
	int fd = gm_output_create(&store.output, store.asked), error;

	if (fd < 0)
		return fd;
	store.backing.path = store.output.path;
	error = gm_backing_map(&store.backing, fd, bytes, NULL);
	close(fd);
	if (error)
		unlink(store.output.path);
	return error;
}

static int map_private(uint64_t bytes)
{
	store.backing.base =
		gm_map_unlocked(bytes, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
	if (store.backing.base == MAP_FAILED) {
		store.backing.base = NULL;
		return -errno;
	}
	store.private_memory = true;
	return 0;
}

static int set_up_tables(void)
{
	size_t bytes = (size_t)GM_TABLES_NOW * store.capacity * sizeof(char *);
	char **addresses = gm_map_unlocked(bytes, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
	int i;

	if (addresses == MAP_FAILED)
		return -errno;
	store.address_bytes = bytes;
	for (i = 0; i < GM_TABLES_NOW; i++) {
		store.tables[i] = (struct table){
			.chunks = addresses + (size_t)i * store.capacity,
			.reciprocal = UINT64_MAX / (GM_CHUNK_BYTES / record_bytes[i]) + 1,
			.per_chunk = GM_CHUNK_BYTES / record_bytes[i],
			.record_bytes = record_bytes[i],
		};
	}
	return 0;
}

static void fill_header(struct gm_header *header, uint64_t cap_bytes)
{
	int i;

	gm_header_identify(header);
	header->directory_capacity = store.capacity;
	header->cap_bytes = cap_bytes;
	header->data_offset = store.data_offset;
	header->machine = gm_machine();
	for (i = 0; i < GM_TABLES_NOW; i++)
		header->tables[i].record_bytes = record_bytes[i];
}

/*
 * Divides `bytes` into header, directory and chunks. Returns false if they are too few to be of
 * use.
 */
static bool lay_out(uint64_t bytes)
{
	uint64_t directory_bytes = bytes / GM_CHUNK_BYTES * sizeof(struct gm_directory_entry);

	directory_bytes =
		(directory_bytes + GM_HEADER_BYTES - 1) / GM_HEADER_BYTES * GM_HEADER_BYTES;
	store.data_offset = GM_HEADER_BYTES + directory_bytes;
	if (bytes < store.data_offset + 4 * GM_CHUNK_BYTES)
		return false;
	store.capacity = (uint32_t)((bytes - store.data_offset) / GM_CHUNK_BYTES);
	return true;
}

static int create_file(uint64_t bytes)
{
	int error;

	if (!lay_out(bytes))
		return -EFBIG; /* RLIMIT_FSIZE is too low for a file */
	error = map_file(bytes);
	if (error)
		return error;
	error = back(0, store.data_offset);
	if (error) { /* the disk is full already */
		munmap(store.backing.base, bytes);
		unlink(store.output.path);
		if (store.output.wanted[0])
			unlink(store.output.wanted);
	}
	return error;
}

int gm_store_create(const char *path, uint64_t cap_bytes)
{
	uint64_t bytes = clamp_cap(cap_bytes);
	int error, failure;

	memset(&store, 0, sizeof(store));
	if (strlen(path) >= sizeof(store.asked))
		return -ENAMETOOLONG;
	strcpy(store.asked, path);
	failure = create_file(bytes);
	if (failure) {
		if (bytes < GM_MIN_FILE_BYTES)
			bytes = GM_MIN_FILE_BYTES;
		lay_out(bytes);
		error = map_private(bytes);
		if (error)
			return error;
	}
	store.mapped_bytes = bytes;
	error = set_up_tables();
	if (error) {
		munmap(store.backing.base, bytes);
		if (!failure)
			unlink(store.output.path);
		return error;
	}
	madvise(store.backing.base, bytes, MADV_DONTFORK);
	store.directory = (struct gm_directory_entry *)(store.backing.base + GM_HEADER_BYTES);
	fill_header((struct gm_header *)store.backing.base, bytes);
	gm_file = (struct gm_header *)store.backing.base;
	return failure; /* negative with gm_file set: the file is in private memory, and the caller
			   warns */
}

const char *gm_store_path(void)
{
	if (store.output.wanted[0])
		return store.output.wanted;
	return store.output.path[0] ? store.output.path : store.asked;
}

const struct gm_output_path *gm_store_output_path(void)
{
	return store.private_memory ? NULL : &store.output;
}

static uint64_t used_bytes(void)
{
	return store.data_offset +
	       (uint64_t)__atomic_load_n(&gm_file->chunk_count, __ATOMIC_ACQUIRE) * GM_CHUNK_BYTES;
}

static int write_all(int fd, const char *data, uint64_t bytes)
{
	while (bytes) {
		ssize_t done = write(fd, data, bytes < (1u << 30) ? bytes : (1u << 30));

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return done < 0 ? -errno : -EIO;
		data += done;
		bytes -= (uint64_t)done;
	}
	return 0;
}

static int write_copy(int fd)
{
	uint64_t features = (gm_file->features | GM_FEATURE_COPY) &
			    ~(GM_FEATURE_LOCKED | GM_FEATURE_JOURNAL);
	int error = write_all(fd, store.backing.base, used_bytes());

	if (!error && pwrite(fd, &features, sizeof(features),
			     offsetof(struct gm_header, features)) != (ssize_t)sizeof(features))
		error = -EIO;
	return error;
}

static int copy_to(const char *path)
{
	int fd = gm_file_begin(path, false), error;

	if (fd < 0)
		return fd;
	error = write_copy(fd);
	if (!error)
		error = gm_file_publish_keeping(fd, path);
	if (error)
		gm_file_abandon();
	if (close(fd) < 0 && !error)
		error = -errno;
	return error;
}

int gm_store_copy(const char *path)
{
	struct gm_syscall_guard guard;
	int error;

	if (!gm_files_lock(false))
		return -EAGAIN;
	gm_syscall_guard_enter(&guard);
	error = copy_to(path);
	gm_syscall_guard_leave(&guard);
	gm_files_unlock();
	return error;
}

/*
 * Writes the private fallback to disk, if a file can be created now; once more after an exec that
 * failed.
 */
static int write_private(void)
{
	struct stat st;
	int fd, error;

	fd = store.backing.inode ? gm_backing_open(&store.backing)
				 : gm_output_create(&store.output, store.asked);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) == 0) {
		store.backing.path = store.output.path;
		store.backing.device = st.st_dev;
		store.backing.inode = st.st_ino;
	}
	error = lseek(fd, 0, SEEK_SET) < 0 ? -errno
					   : write_all(fd, store.backing.base, used_bytes());
	close(fd);
	if (error)
		unlink(store.output.path); /* half a file would be misleading */
	return error;
}

/*
 * Stops the handing out of chunks, so that no thread writes beyond the end that the file is cut to,
 * which would raise SIGBUS. Returns false if the lock cannot be taken: this thread may hold it, if
 * it was interrupted by a signal handler that ends the process. The file then keeps its length,
 * which costs nothing, because it is sparse.
 */
static bool stop_growth(void)
{
	unsigned i;

	for (i = 0; i < MOST_YIELDS; i++) {
		if (gm_lock_try(&store.lock)) {
			store.capacity = gm_file->chunk_count;
			gm_lock_release(&store.lock);
			return true;
		}
		sched_yield();
	}
	return false;
}

/*
 * Unmaps what lies beyond the file's new end, where valgrind, which reads it, would get SIGBUS for
 * each page.
 */
static void unmap_tail(void)
{
	uint64_t used = used_bytes();

	mmap(store.backing.base + used, store.mapped_bytes - used, PROT_NONE,
	     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

static int finish_file(void)
{
	int fd, error = 0;
	bool stopped = stop_growth();

	if (store.private_memory)
		return write_private();
	fd = gm_backing_open(&store.backing);
	if (fd < 0)
		return fd;
	if (stopped && ftruncate(fd, (off_t)used_bytes()) < 0)
		error = -errno;
	close(fd);
	if (error)
		return error;
	if (stopped)
		unmap_tail();
	return gm_output_settle(&store.output);
}

int gm_store_finish(void)
{
	int history = gm_journal_finish(), error = finish_file();

	return error ? error : history;
}

static uint32_t most_chunks(void)
{
	return (uint32_t)((store.mapped_bytes - store.data_offset) / GM_CHUNK_BYTES);
}

/*
 * Copies what is mapped into a file, which is mapped in its place. Under the lock: a chunk that was
 * handed out after the copy began would be in neither the directory nor the number of chunks.
 */
static int map_copy(int fd)
{
	int error = write_all(fd, store.backing.base, used_bytes());

	if (!error)
		error = gm_backing_map(&store.backing, fd, store.mapped_bytes, store.backing.base);
	if (!error)
		store.capacity = most_chunks();
	return error;
}

int gm_store_move(const char *path)
{
	struct gm_output_path output = {0};
	uint64_t features;
	int fd, error = -EIO;

	if (strlen(path) >= sizeof(store.asked))
		return -ENAMETOOLONG;
	fd = gm_output_create(&output, path);
	if (fd < 0)
		return fd;
	if (pread(fd, &features, sizeof(features), offsetof(struct gm_header, features)) ==
		    (ssize_t)sizeof(features) &&
	    lseek(fd, 0, SEEK_SET) == 0) {
		gm_lock_acquire(&store.lock);
		error = map_copy(fd);
		if (!error) {
			strcpy(store.asked, path);
			store.output = output;
			store.backing.path = store.output.path;
			store.private_memory = false;
		}
		gm_lock_release(&store.lock);
	}
	close(fd);
	if (error) {
		gm_output_remove(&output);
		return error;
	}
	madvise(store.backing.base, store.mapped_bytes, MADV_DONTFORK);
	gm_file->features = (gm_file->features & ~(uint64_t)GM_FEATURE_LOCKED) |
			    (features & GM_FEATURE_LOCKED);
	return 0;
}

/* Maps a private copy in the place of the file. Under the lock, as map_copy. */
static void map_private_copy(void)
{
	uint64_t used = used_bytes();
	void *copy = mmap(NULL, used, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (copy == MAP_FAILED)
		return;
	memcpy(copy, store.backing.base, used);
	if (mremap(copy, used, used, MREMAP_MAYMOVE | MREMAP_FIXED, store.backing.base) ==
	    MAP_FAILED)
		munmap(copy, used);
}

void gm_store_release(void)
{
	if (store.private_memory)
		return;
	gm_lock_acquire(&store.lock);
	map_private_copy();
	gm_lock_release(&store.lock);
}

void gm_store_discard(void)
{
	if (!store.private_memory)
		gm_output_remove(&store.output);
}

int gm_store_before_exec(void)
{
	return store.private_memory ? write_private() : 0;
}

void gm_store_in_child(void)
{
	void *memory;

	if (!gm_file)
		return;
	gm_journal_in_child();
	memory = mmap(store.backing.base, store.mapped_bytes, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
	store.replaced = memory != MAP_FAILED;
}

void gm_store_forget(void)
{
	gm_journal_forget();
	gm_files_forget();
	if (store.replaced)
		munmap(store.backing.base, store.mapped_bytes);
	if (store.tables[0].chunks)
		munmap(store.tables[0].chunks, store.address_bytes);
	gm_file = NULL;
	memset(&store, 0, sizeof(store));
}

/*
 * Returns whether a table is left out of a file that is hardly large enough: those that hold the
 * course of time.
 */
static bool left_out(enum gm_table_id id)
{
	return store.capacity < FEW_CHUNKS &&
	       (id == GM_TABLE_EVENTS || id == GM_TABLE_TIMELINE || id == GM_TABLE_LEDGER_HISTORY ||
		id == GM_TABLE_PEAKS || id == GM_TABLE_PEAK_BLOCKS || id == GM_TABLE_RANGES);
}

/*
 * Returns how many chunks may be in use before a table gets another one. Tables that grow with the
 * places and the events of a program leave an eighth of the file to the live allocations, without
 * which no free is known, and these leave some chunks to the tables of figures.
 */
static uint32_t limit_of(enum gm_table_id id)
{
	uint32_t figures = store.capacity / 16 < FIGURE_CHUNKS ? store.capacity / 16
							       : FIGURE_CHUNKS;

	if (store.capacity < FEW_CHUNKS)
		return store.capacity;
	switch (id) {
	case GM_TABLE_STRINGS:
	case GM_TABLE_MODULES:
	case GM_TABLE_FRAMES:
	case GM_TABLE_STACK_FRAMES:
	case GM_TABLE_STACKS:
	case GM_TABLE_SITES:
	case GM_TABLE_ERRORS:
	case GM_TABLE_FREED_EXPORTS:
	case GM_TABLE_EVENTS:
	case GM_TABLE_OOM_SITES:
	case GM_TABLE_OOM_BLOCKS:
	case GM_TABLE_PEAK_BLOCKS:
	case GM_TABLE_RANGES:
	case GM_TABLE_CAPTURES:
		return store.capacity - figures - store.capacity / 8;
	case GM_TABLE_ALLOCS:
		return store.capacity - figures;
	default:
		return store.capacity;
	}
}

/*
 * Gives the next chunk of the file to a table. Most tables hardly begin their first one, of which
 * only the beginning is backed. The caller holds the store's lock.
 */
static bool add_chunk(enum gm_table_id id)
{
	struct table *table = &store.tables[id];
	uint32_t number = gm_file->chunk_count;
	uint64_t offset = store.data_offset + (uint64_t)number * GM_CHUNK_BYTES;
	uint32_t bytes = table->chunk_count ? GM_CHUNK_BYTES : FIRST_BYTES;

	if (number >= limit_of(id) || left_out(id) || back(offset, bytes) < 0)
		return false;
	store.directory[number].table = id;
	store.directory[number].ordinal = table->chunk_count;
	__atomic_store_n(&table->chunks[table->chunk_count], store.backing.base + offset,
			 __ATOMIC_RELEASE);
	if (table->chunk_count < FIRST_CHUNKS)
		__atomic_store_n(&table->first[table->chunk_count], store.backing.base + offset,
				 __ATOMIC_RELEASE);
	table->backed += bytes / table->record_bytes;
	table->chunk_count++;
	__atomic_store_n(&gm_file->chunk_count, number + 1, __ATOMIC_RELEASE);
	return true;
}

/* Backs the rest of a table's last chunk, or another one. The caller holds the store's lock. */
static bool grow(enum gm_table_id id)
{
	struct table *table = &store.tables[id];
	uint32_t most = table->chunk_count * table->per_chunk;

	if (table->backed == most)
		return add_chunk(id);
	if (back((uint64_t)(table->chunks[table->chunk_count - 1] - store.backing.base),
		 GM_CHUNK_BYTES) < 0)
		return false;
	table->backed = most;
	return true;
}

/* Threads that still run while the process ends lose nothing that counts. */
void gm_store_dropped(enum gm_table_id id)
{
	if (gm_file->end == GM_END_EXIT)
		return;
	__atomic_fetch_add(&gm_file->dropped_records, 1, __ATOMIC_RELAXED);
	gm_store_incomplete(id);
}

static __attribute__((noinline)) bool grow_to(enum gm_table_id id, uint64_t end)
{
	struct table *table = &store.tables[id];
	int saved = errno;
	bool fits = true;

	if (table->refused) {
		table->refused--;
		return false;
	}
	gm_lock_acquire(&store.lock);
	while (fits && end > table->backed)
		fits = grow(id);
	gm_lock_release(&store.lock);
	if (!fits)
		table->refused = RETRY_AFTER;
	errno = saved;
	return fits;
}

static bool ensure_capacity(enum gm_table_id id, uint64_t end)
{
	return end <= store.tables[id].backed || grow_to(id, end);
}

int gm_store_try_reserve(enum gm_table_id id)
{
	struct table *table = &store.tables[id];
	bool fits;

	if (table->next < table->backed)
		return 0;
	if (!gm_lock_try(&store.lock))
		return -EAGAIN;
	fits = grow(id);
	gm_lock_release(&store.lock);
	return fits ? 0 : -ENOSPC;
}

/*
 * Returns index / per_chunk; exact for all 32-bit numbers if per_chunk is above 1 (Lemire, 2019).
 */
static inline uint32_t chunk_of(const struct table *table, uint32_t index)
{
	return (uint32_t)((__uint128_t)table->reciprocal * index >> 64);
}

static inline char *record_in(const struct table *table, char *chunk, uint32_t number,
			      uint32_t index)
{
	return chunk + (size_t)(index - number * table->per_chunk) * table->record_bytes;
}

bool gm_store_ensure(enum gm_table_id id, uint32_t count)
{
	return ensure_capacity(id, (uint64_t)store.tables[id].next + count);
}

void *gm_store_append(enum gm_table_id id, uint32_t count, uint32_t *index)
{
	struct table *table = &store.tables[id];
	uint32_t number;

	if (!ensure_capacity(id, (uint64_t)table->next + count)) {
		gm_store_dropped(id);
		return NULL;
	}
	*index = table->next;
	table->next += count;
	number = chunk_of(table, *index);
	return record_in(table, table->chunks[number], number, *index);
}

void gm_store_publish(enum gm_table_id id)
{
	__atomic_store_n(&gm_file->tables[id].count, store.tables[id].next, __ATOMIC_RELEASE);
}

void gm_store_clear(enum gm_table_id id)
{
	struct table *table = &store.tables[id];
	uint32_t i, chunks = (table->next + table->per_chunk - 1) / table->per_chunk;

	__atomic_store_n(&gm_file->tables[id].count, 0, __ATOMIC_RELEASE);
	for (i = 0; i < chunks; i++) {
		uint32_t left = table->next - i * table->per_chunk;

		memset(table->chunks[i], 0,
		       (size_t)(left < table->per_chunk ? left : table->per_chunk) *
			       table->record_bytes);
	}
	table->next = 0;
}

void *gm_store_record(enum gm_table_id id, uint32_t index)
{
	const struct table *table = &store.tables[id];
	uint32_t number = chunk_of(table, index);
	char *chunk;

	if (number < FIRST_CHUNKS)
		chunk = __atomic_load_n(&table->first[number], __ATOMIC_ACQUIRE);
	else if (index == GM_NONE || number >= store.capacity)
		return NULL;
	else
		chunk = __atomic_load_n(&table->chunks[number], __ATOMIC_ACQUIRE);
	return chunk ? record_in(table, chunk, number, index) : NULL;
}

uint32_t gm_store_index(enum gm_table_id id, const void *record)
{
	const struct table *table = &store.tables[id];
	uint64_t offset = (uint64_t)((const char *)record - store.backing.base) - store.data_offset;
	uint32_t ordinal = store.directory[offset / GM_CHUNK_BYTES].ordinal;

	return ordinal * table->per_chunk +
	       (uint32_t)(offset % GM_CHUNK_BYTES) / table->record_bytes;
}

/* Returns `bytes` less the start of a UTF-8 character that would be cut in two. */
static size_t cut_utf8(const char *text, size_t bytes)
{
	while (bytes && ((unsigned char)text[bytes] & 0xc0) == 0x80)
		bytes--;
	return bytes;
}

uint32_t gm_store_string(const char *text, size_t max)
{
	struct table *table = &store.tables[GM_TABLE_STRINGS];
	size_t bytes = text ? strnlen(text, max < MAX_STRING_BYTES ? max : MAX_STRING_BYTES) : 0;
	uint32_t at = GM_NONE, left;
	bool fits = true;

	if (!text)
		return GM_NONE;
	if (text[bytes])
		bytes = cut_utf8(text, bytes);
	gm_lock_acquire(&store.lock);
	left = GM_CHUNK_BYTES - table->next % GM_CHUNK_BYTES;
	if (left <= bytes) /* a string does not cross a chunk */
		table->next += left;
	while (fits && (uint64_t)table->next + bytes >= table->backed)
		fits = grow(GM_TABLE_STRINGS);
	if (fits) {
		at = table->next;
		memcpy(table->chunks[at / GM_CHUNK_BYTES] + at % GM_CHUNK_BYTES, text, bytes);
		table->next += (uint32_t)bytes + 1;
		gm_store_publish(GM_TABLE_STRINGS);
	}
	gm_lock_release(&store.lock);
	if (!fits)
		gm_store_dropped(GM_TABLE_STRINGS);
	return at;
}

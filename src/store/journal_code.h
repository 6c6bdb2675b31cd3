/*
 * The format of OUT.events, the complete history (GPUMEMTRACE_EVENTS=all): a journal of the changes
 * to the table of live allocations, and of the calls that do not change it. Replaying it from the
 * start to some moment gives the table at that moment, and with it every current figure.
 *
 * The file:   header (one page) | chunk 0 | chunk 1 | ...
 *
 * A chunk is GM_JOURNAL_CHUNK_BYTES long and has a struct gm_journal_chunk, followed by entries of
 * a few bytes each. An entry is stored as its differences from the entry before. The differences of
 * each chunk start from the values in its header, so that damage does not extend beyond a chunk. An
 * entry is stored first and then counted in `filled` with release order: an entry that a killed
 * process was storing is not counted, and one that is counted is whole.
 *
 * The first byte of an entry has in bits 0 and 1 what it is (enum gm_journal_what), in bit 2
 * whether a thread follows because it is another one than before, in bits 3 and 4 the level of an
 * addition, in bit 5 whether its bytes are in units of 512, in bit 6 whether the difference of its
 * address from the last one of its level is, and in bit 7 whether a byte of GM_ADD_... follows.
 * Numbers are LEB128, signed ones in zigzag. Every entry goes on with the nanoseconds since the
 * entry before and, if bit 2 says so, the thread. Then follow
 *
 *   add     record index, site, address, bytes, the fields that the GM_ADD_ byte names
 *   drop    record index
 *   resize  record index, bytes
 *   call    enum gm_event_op, GM_CALL_... bits, the fields that they name
 *   part    as a call, with GM_JOURNAL_PART_OP in place of the operation; enum gm_checkpoint_part,
 *           index, the fields of the record
 *
 * CHECKPOINTS. So that a moment need not be played from the start, a long history contains
 * checkpoints: the tables of the tracker, one entry for each record. The entries of a checkpoint
 * lie between the others, because the tracker writes a few of them at a time; what changes
 * meanwhile is in the entries between them. (Databases call this a fuzzy checkpoint.) A reader
 * begins at a checkpoint's GM_PART_BEGIN with empty tables and applies all entries. It passes over
 * removals and changes of allocations that it does not know yet. After GM_PART_WINDOWS and what
 * stands before it the live table and the totals are complete, after GM_PART_END the sites are.
 * Only a checkpoint whose end was written is in the list of the header.
 *
 * The shim and the report share this code. It calls nothing but memset and is safe in any context.
 */
#ifndef GM_STORE_JOURNAL_CODE_H
#define GM_STORE_JOURNAL_CODE_H

#include "store/layout.h"
#include <stdbool.h>

#define GM_JOURNAL_MAGIC       "GMEVENT" /* 8 bytes with the NUL */
#define GM_JOURNAL_VERSION     3u	 /* with checkpoints */
#define GM_JOURNAL_TRACED      2u	 /* with what the ring has not */
#define GM_JOURNAL_OLDEST      1u	 /* of a history without either */
#define GM_JOURNAL_CHUNK_MAGIC 0x56454d47u
#define GM_JOURNAL_CHUNK_BYTES GM_CHUNK_BYTES
#define GM_JOURNAL_ENTRY_BYTES 128u  /* no entry is longer, but a part of a checkpoint */
#define GM_JOURNAL_PART_BYTES  1024u /* no part of a checkpoint is longer */
#define GM_JOURNAL_PART_OP     255u
#define GM_JOURNAL_CHECKPOINTS 480u /* that the header has room for */

/* The reasons why a journal ends before the recording does. */
enum gm_journal_loss { GM_JOURNAL_WHOLE, GM_JOURNAL_CAP, GM_JOURNAL_DISK };

struct gm_journal_header {
	char magic[8];
	uint32_t byte_order; /* GM_BYTE_ORDER */
	uint32_t format_version;
	uint32_t oldest_version; /* a reader of at least this version can read it */
	uint32_t header_bytes;	 /* GM_HEADER_BYTES */
	uint32_t chunk_bytes;
	uint32_t pid; /* this and the next three fields are those of the output file */
	uint64_t pid_start_ticks;
	uint64_t started_realtime_ns;
	uint64_t started_monotonic_ns;
	uint64_t cap_bytes;   /* GPUMEMTRACE_MAX_EVENTS */
	uint64_t chunk_count; /* chunks in use (release) */
	uint64_t
		lost; /* entries that were not kept; all of them come after the last one that was */
	uint64_t lost_from_ns; /* time of the first lost entry */
	uint32_t loss;	       /* enum gm_journal_loss */
	uint32_t checkpoints;  /* in the list (release); 0 in files of older shims */
	/* the chunk in which it begins << 32 | the one in which it ends, in order */
	uint64_t checkpoint[GM_JOURNAL_CHECKPOINTS];
};
_Static_assert(sizeof(struct gm_journal_header) <= GM_HEADER_BYTES, "the header fits its page");

struct gm_journal_chunk {
	uint32_t magic;
	uint32_t number;
	uint64_t filled;      /* entries << 32 | bytes of entries (release) */
	uint64_t base_ns;     /* start of the first entry's time */
	uint64_t base_serial; /* `serial` before the first entry */
};

enum gm_journal_what {
	GM_JOURNAL_ADD,
	GM_JOURNAL_DROP,
	GM_JOURNAL_RESIZE,
	GM_JOURNAL_CALL,
	GM_JOURNAL_PART
};

/* The parts of a checkpoint, in their order. */
enum gm_checkpoint_part {
	GM_PART_BEGIN,
	GM_PART_ALLOC, /* each live allocation; `index` is its record's */
	GM_PART_LEVEL,
	GM_PART_USAGE,
	GM_PART_TORCH,
	GM_PART_VMM,
	GM_PART_WINDOWS, /* of the header; again before sites, whose windows follow these */
	GM_PART_SITE,	 /* each one that was allocated from; `index` is its record's */
	GM_PART_END,	 /* `index`: how many records the table of live allocations has */
	GM_PARTS
};

/* A record of a checkpoint. Fields that no reader of a history needs are 0. */
struct gm_checkpoint_record {
	enum gm_checkpoint_part part;
	uint32_t index;
	union {
		struct gm_alloc_record alloc;
		struct gm_level_record level;
		struct gm_usage_record usage;
		struct gm_torch_record torch;
		struct gm_vmm_record vmm;
		struct gm_header windows;
		struct gm_site_record site;
	} of;
};

/*
 * Fields of an addition that differ from those of the last one of its level, or from their default:
 * no owner, the next serial number, and the physical bytes that the caller expects.
 */
#define GM_ADD_CLASS	1u /* space, kind, device, flags */
#define GM_ADD_STREAM	2u
#define GM_ADD_CONTEXT	4u
#define GM_ADD_OWNER	8u
#define GM_ADD_PHYSICAL 16u /* difference from what the caller expects */
#define GM_ADD_SERIAL	32u /* difference from the last allocation's, less 1 */

/* Fields of a call that are not 0 (site, stack: not GM_NONE; function: not UINT16_MAX). */
#define GM_CALL_KEY	 1u
#define GM_CALL_BYTES	 2u
#define GM_CALL_SERIAL	 4u /* distance in allocations */
#define GM_CALL_SITE	 8u
#define GM_CALL_STACK	 16u
#define GM_CALL_FUNCTION 32u
#define GM_CALL_ERROR	 64u
#define GM_CALL_STREAM	 128u
#define GM_CALL_CLASS	 256u /* space, kind, device, level */
#define GM_CALL_BITS	 511u

/*
 * An entry of a journal. An addition has all of `alloc` but references, mappings and the state,
 * with `physical_bytes` as the difference (modulo 2^64) from what the caller expects.
 */
struct gm_journal_entry {
	enum gm_journal_what what;
	uint32_t index; /* of the record in the table of live allocations; a call has none */
	uint64_t bytes; /* the new size of a resize */
	struct gm_alloc_record alloc; /* of an addition */
	struct gm_event_record event; /* of a call; other entries have its time and thread alone */
	struct gm_checkpoint_record record; /* of a part of a checkpoint */
};

/*
 * The values from which the next entry's differences are taken. They are set by gm_journal_begin
 * for each chunk.
 */
struct gm_journal_state {
	uint64_t time_ns, serial, call_key;
	uint32_t thread;
	struct {
		uint64_t key, stream;
		uint32_t context;
		uint16_t flags;
		uint8_t space, kind;
		int16_t device;
	} level[GM_LEVELS];
};

void gm_journal_begin(struct gm_journal_state *state, uint64_t base_ns, uint64_t base_serial);

/*
 * Each of these stores an entry of at most GM_JOURNAL_ENTRY_BYTES at `to` and returns where it
 * ends. `expected_bytes` are the physical bytes that the reader will expect of the allocation
 * (gm_driver_bytes of account/sizes.h): the format does not know the driver's sizes and stores only
 * a difference.
 */
uint8_t *gm_journal_put_add(struct gm_journal_state *state, uint8_t *to, uint32_t index,
			    const struct gm_alloc_record *alloc, uint64_t expected_bytes);
uint8_t *gm_journal_put_drop(struct gm_journal_state *state, uint8_t *to, uint32_t index,
			     uint64_t time_ns, uint32_t thread);
uint8_t *gm_journal_put_resize(struct gm_journal_state *state, uint8_t *to, uint32_t index,
			       uint64_t bytes, uint64_t time_ns, uint32_t thread);
uint8_t *gm_journal_put_call(struct gm_journal_state *state, uint8_t *to,
			     const struct gm_event_record *event);

/*
 * Stores a part of a checkpoint, at most GM_JOURNAL_PART_BYTES. `record` is the record in the
 * tracker's tables that the part is made of: the header of the file for GM_PART_WINDOWS, nothing
 * for GM_PART_BEGIN and GM_PART_END.
 */
uint8_t *gm_journal_put_part(struct gm_journal_state *state, uint8_t *to,
			     enum gm_checkpoint_part part, uint32_t index, const void *record,
			     uint64_t time_ns);

/*
 * Reads the entry at `at` and returns where it ends, or NULL if the bytes are no entry: they end
 * within it, or name a kind, level or operation that does not exist.
 */
const uint8_t *gm_journal_get(struct gm_journal_state *state, const uint8_t *at, const uint8_t *end,
			      struct gm_journal_entry *entry);

#endif

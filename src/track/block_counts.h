/*
 * Counting PyTorch's blocks without the lock, in a sampled recording (struct gm_torch_record,
 * `counting`).
 *
 * PyTorch calls its hook with the mutex of the device's allocator held, so two events of a device
 * are never at once, and an event may change the counts of its device by plain stores. That is a
 * fact about PyTorch's native allocator, of every version with the hook (docs/internals/locks.md
 * says where it stands), but an allocator that another program made may call without a lock. An
 * event that finds another under way (`turn` is odd) says so in `contended`; from then on the
 * blocks of the device are counted under the lock. What the two made of the counts in between is
 * put right by PyTorch's own totals, which each event compares.
 *
 * An event is counted so only if it changes nothing but the counts and the extremes of the
 * timeline's open point. All others are recorded under the lock (torch_blocks.c), where they may
 * count too.
 */
#ifndef GM_TRACK_BLOCK_COUNTS_H
#define GM_TRACK_BLOCK_COUNTS_H

#include "store/thread_state.h"
#include "track/clock.h"
#include "track/event.h"

#include <stdbool.h>

#define GM_COUNTED_DEVICES 16u /* the blocks of devices beyond are counted under the lock */

/*
 * Of so many events one compares the clock's counter with `due_ticks`: if that is reached the event
 * reads the clock, under the lock. The others have its time.
 */
#define GM_COUNTS_PER_LOOK 64u

/*
 * The records in which blocks are counted without the lock, NULL where they are not, and the points
 * of these blocks, which the allocator's mutex guards too. They lie on the recorder's wipe-on-fork
 * page, because the child of a fork must not touch the records of its parent.
 */
struct gm_counted {
	struct gm_counted_device {
		struct gm_torch_record *torch; /* (atomic) */
		struct gm_sample_points points;
	} device[GM_COUNTED_DEVICES + 1]; /* the last is of the devices beyond */
};

/*
 * Sets where the records are noted; NULL, as at first: no blocks are counted without the lock.
 * Called before the first event of a file.
 */
void gm_track_count_blocks(struct gm_counted *counted);
extern GM_HIDDEN struct gm_counted *gm_counted;

/* Returns the element of a device. gm_counted is not NULL. */
static inline struct gm_counted_device *gm_counted_device(int device)
{
	return &gm_counted->device[(unsigned)device < GM_COUNTED_DEVICES ? (unsigned)device
									 : GM_COUNTED_DEVICES];
}

/*
 * Returns the record of a device whose blocks are counted without the lock, NULL for others.
 * Another thread can end that at any moment, so an event asks once.
 */
static inline struct gm_torch_record *gm_counted_torch(const struct gm_counted_device *counted)
{
	return __atomic_load_n(&counted->torch, __ATOMIC_ACQUIRE);
}

/*
 * For each place in this table the number of live sampled blocks whose addresses lead there. An
 * address that leads to a zero is not sampled: a block's allocation is over before its free begins.
 */
#define GM_SAMPLED_PLACES 2048u
extern GM_HIDDEN uint16_t gm_sampled_places[GM_SAMPLED_PLACES]; /* atomic; changes under the lock */

static inline uint16_t *gm_sampled_place(uint64_t block)
{
	return &gm_sampled_places[(uint32_t)(block >> 9) * 0x9e3779b1u >> 21];
}

/* True if the block may be sampled. */
static inline bool gm_may_be_sampled(uint64_t block)
{
	return __atomic_load_n(gm_sampled_place(block), __ATOMIC_RELAXED) != 0;
}

/* Returns the counts that hold at a turn. */
static inline struct gm_block_counts *gm_counts_of(struct gm_torch_record *torch, uint64_t turn)
{
	_Static_assert(sizeof(*torch->counts) == 32, "an offset from bit 1 of the turn");
	return (void *)((char *)torch->counts + (turn & 2) * 16);
}

/*
 * The step of gm_count_block that changes the counts. It has no branches: `freed` has all bits set
 * or none.
 */
static inline void gm_change_counts(struct gm_torch_record *torch, uint64_t turn, int64_t bytes,
				    uint64_t allocated)
{
	const struct gm_block_counts *from = gm_counts_of(torch, turn);
	/* the other half of their cache line */
	struct gm_block_counts *to = (void *)((uintptr_t)from ^ sizeof(*from));
	uint64_t freed = (uint64_t)(bytes >> 63);

	__atomic_store_n(&torch->turn, turn + 1, __ATOMIC_RELAXED);
	__atomic_store_n(&to->allocated_bytes, allocated, __ATOMIC_RELAXED);
	__atomic_store_n(&to->allocations, from->allocations + 1 + freed, __ATOMIC_RELAXED);
	__atomic_store_n(&to->frees, from->frees - freed, __ATOMIC_RELAXED);
	__atomic_store_n(&to->allocated_total_bytes,
			 from->allocated_total_bytes + ((uint64_t)bytes & ~freed),
			 __ATOMIC_RELAXED);
	__atomic_store_n(&torch->turn, turn + 2, __ATOMIC_RELEASE);
}

/*
 * Counts a block that came, or (less than 0 bytes) went. Returns false, and has changed nothing, if
 * the event has to be recorded under the lock. `torch` is a record of struct gm_counted. Called by
 * PyTorch's hook alone.
 */
static inline __attribute__((always_inline)) bool
gm_count_block(struct gm_torch_record *torch, int64_t bytes, struct gm_torch_totals totals)
{
	uint64_t turn = __atomic_load_n(&torch->turn, __ATOMIC_RELAXED);
	uint64_t allocated = totals.allocated_bytes;

	if (__builtin_expect(turn & 1, 0)) {
		__atomic_store_n(&torch->contended, 1, __ATOMIC_RELAXED);
		return false;
	}
	if (__builtin_expect(gm_counts_of(torch, turn)->allocated_bytes + (uint64_t)bytes !=
					     allocated ||
				     totals.reserved_bytes != torch->reserved_seen_bytes,
			     0))
		return false;
	if (__builtin_expect(allocated > torch->upper_bytes, 0)) {
		if (allocated > torch->headroom_bytes)
			return false;
		__atomic_store_n(&torch->upper_bytes, allocated, __ATOMIC_RELAXED);
	}
	if (__builtin_expect(allocated < torch->lower_bytes, 0))
		__atomic_store_n(&torch->lower_bytes, allocated, __ATOMIC_RELAXED);
	gm_change_counts(torch, turn, bytes, allocated);
	return true;
}

/* True if the next event has to look at the counter, and if it then has to read the clock. */
static inline bool gm_look_is_due(const struct gm_torch_record *torch)
{
	return torch->turn / 2 % GM_COUNTS_PER_LOOK == 0;
}

static inline bool gm_clock_is_due(const struct gm_torch_record *torch)
{
	return gm_clock_ticks() >= torch->due_ticks;
}

/* ---- the records and sites of sampled blocks; for track/, under the lock ---- */

/* Records a sampled block that came. The level, which counts all blocks, has not its bytes yet. */
void gm_sample_add(uint64_t block, uint64_t bytes, int device, struct gm_origin origin);

/*
 * Ends the record of the block that went from an address, if it was sampled. The level still has
 * its bytes.
 */
void gm_sample_end(uint64_t block);

/* Forgets which blocks are sampled. */
void gm_blocks_reset(void);

#endif

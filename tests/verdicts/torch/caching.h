/*
 * What the stand-in for libc10_cuda.so exports to the Python package beside it
 * (programs/site-packages/torch/_C.py, by ctypes). Sizes are bytes; a block is known by its handle.
 */
#ifndef TESTS_VERDICTS_CACHING_H
#define TESTS_VERDICTS_CACHING_H

#include <stdbool.h>
#include <stdint.h>

struct block;

/* A row of torch.cuda.memory_snapshot(): a segment, or one of its blocks. */
struct standin_row {
	uint64_t address, bytes, requested;
	int32_t device, stream, pool, frames;
	uint8_t is_segment, small, expandable, state; /* 0 free, 1 allocated, 2 pending free */
};

/* An entry of the recorded history. */
struct standin_entry {
	uint64_t address, bytes, time_us, device_free;
	int32_t device, stream, pool, frames;
	uint32_t action;
};

enum standin_action {
	STANDIN_ALLOC,
	STANDIN_FREE_REQUESTED,
	STANDIN_FREE_COMPLETED,
	STANDIN_SEGMENT_ALLOC,
	STANDIN_SEGMENT_FREE,
	STANDIN_SEGMENT_MAP,
	STANDIN_SEGMENT_UNMAP,
	STANDIN_OOM,
};

/*
 * A block of at least `bytes`, after `launches` kernels ran; NULL if there is no memory, after the
 * cache was emptied and the hook for it was called. `pool` 0 is the common pool, others are private
 * ones of graphs.
 */
struct block *standin_allocate(uint64_t bytes, int device, int stream, int pool, unsigned launches);
void standin_free(struct block *block);
/* The block is used on another stream: its free is pending until that stream is waited for. */
void standin_record_stream(struct block *block);
void standin_synchronize(void);
void standin_empty_cache(void);
void standin_launch(unsigned launches);
/* A graph's pool is no longer used: its segments can be released. */
void standin_release_pool(int pool);
void standin_set_fraction(int device, double fraction);
void standin_set_expandable(bool on);

/* Pinned memory, cached by powers of two like PyTorch's; NULL if it is refused. */
void *standin_pin(uint64_t bytes);
void standin_unpin(void *memory, uint64_t bytes);

/* History: where frames are recorded, `frames` is a number of the caller's for what comes next. */
void standin_record(bool on, bool virtual_clock);
void standin_at(int frames);
uint64_t standin_entries(const struct standin_entry **entries);
uint64_t standin_rows(struct standin_row *rows, uint64_t room);

/* The trackers of the allocator's trace (native_allocator.cpp); none without a compiler of C++. */
void standin_trace(const struct standin_entry *entry) __attribute__((weak));
unsigned standin_trackers(void);
/* The exported object is one of another class. */
void standin_change_allocator(void);
/* The trace leaves out the allocation with this number, counted from 1; 0 none. */
void standin_trace_fault(unsigned entries);

#endif

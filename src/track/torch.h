/*
 * What the tracker is told of PyTorch's allocator and of calls that failed for want of memory
 * (torch.c, retries.c, ooms.c), beside the events of event.h. Any thread; nothing blocks on
 * anything but the tracker's own lock.
 */
#ifndef GM_TRACK_TORCH_H
#define GM_TRACK_TORCH_H

#include "track/event.h"

/* A device as the driver and NVML show it; GM_NO_BYTES where they do not say. */
struct gm_device_view {
	uint64_t free_bytes, total_bytes; /* the driver's, under GPUMEMTRACE_CAPACITY that one's */
	uint64_t own_bytes;		  /* this process */
	uint64_t others_bytes;		  /* all other processes */
	uint64_t used_bytes;		  /* all processes */
	uint32_t pids_string;		  /* "PID BYTES\n" of the others, GM_NONE */
};

/* PyTorch's own totals on a device, as its hooks pass them: after the block came or went. */
struct gm_torch_totals {
	uint64_t allocated_bytes, reserved_bytes;
};

/* On which device a block is, and when (gm_clock_ticks) which thread (gm_calling_thread) was told of it. */
struct gm_where {
	int32_t device;
	uint32_t thread;
	uint64_t ticks;
};

/* The stack of a block's allocation and the innermost module outside CUDA and the shim; GM_NONE. */
struct gm_origin {
	uint32_t stack, module;
};

/*
 * PyTorch is about to tell of a block that it handed out: has what will be kept of it on its way into
 * the cache, while a stack is taken. Changes nothing.
 */
void gm_track_block_prefetch(uint64_t block, int device);

/* The same of the site of an allocation with this stack (or GM_NONE), as last met. */
void gm_track_site_prefetch(uint32_t stack);

/* PyTorch handed out a block, at that address. Closes the thread's retry chain. errno stays. */
void gm_track_block(uint64_t block, uint64_t bytes, struct gm_where where, struct gm_origin origin,
		    struct gm_torch_totals totals);

/* PyTorch was given a block back. errno stays. */
void gm_track_block_free(uint64_t block, struct gm_where where, struct gm_torch_totals totals);

/*
 * PyTorch reports that it is out of memory: event->bytes asked for, device, stack, view. Without a
 * failed call of CUDA's before it on this thread it is a limit's doing.
 */
void gm_track_torch_oom(const struct gm_event *event, const struct gm_torch_totals *totals);

/*
 * A sample of the ledger: `view` as asked just now, `physical_bytes` what was tracked before that
 * was asked. False, and nothing is kept, when another thread changed it meanwhile. `reason`: see
 * layout.h.
 */
bool gm_track_ledger(int device, unsigned reason, uint64_t physical_bytes,
		     const struct gm_device_view *view);

/* Managed memory allocated, and what code and limits cost, on a device right now. No lock. */
uint64_t gm_track_managed_bytes(int device);
uint64_t gm_track_code_bytes(int device);

/* Whether a sample is worth its time now: a context's, one for a reason. No lock. */
bool gm_track_ledger_sampled(int device);
bool gm_track_ledger_due(int device, unsigned reason);

/* The first device from `device` on whose memory stands at a peak that is worth one; -1: none. No lock. */
int gm_track_ledger_peak(int device);

/* max_split_size in bytes, if PyTorch was set up with one. */
void gm_track_torch_max_split(uint64_t bytes);

/* True once a block of PyTorch was seen: its events close the chains of its calls. No lock. */
bool gm_track_torch_seen(void);

#endif

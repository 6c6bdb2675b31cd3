/*
 * The input of the model: the requests and frees of one device, whatever file they come from, and
 * the recorded run's answers to them.
 */
#ifndef GM_REPORT_WHATIF_REQUESTS_H
#define GM_REPORT_WHATIF_REQUESTS_H

#include "report/whatif/allocator.h"

enum gm_request_op {
	GM_REQUEST_ALLOC,
	GM_REQUEST_REFUSED, /* the recorded run got its out-of-memory error */
	GM_REQUEST_FREE,
	GM_REQUEST_FREE_LATER, /* streams still use it */
	GM_REQUEST_FREE_DONE,
	GM_REQUEST_EMPTY_CACHE,
	GM_REQUEST_EMPTY_ASSUMED, /* a capture begins: torch.cuda.graph() empties the cache */
	/* of a recorded driver's pool: the program waited for the stream of `pool`, for all of the
	   device's, or trimmed the pool to `bytes` */
	GM_REQUEST_WAIT,
	GM_REQUEST_WAIT_ALL,
	GM_REQUEST_TRIM
};

#define GM_MOST_POOLS 4096

struct gm_request {
	uint64_t bytes;
	uint32_t block; /* numbered by allocation from 0; of a refusal its number in refusals[] */
	uint16_t pool : 12, op : 4;
	uint16_t slack; /* it may have asked for up to so many times 512 bytes less */
};

/* The place and time of a request, for those that are shown. */
struct gm_request_origin {
	uint64_t time_ns;
	uint32_t stack;	  /* GM_TABLE_STACKS; GM_NONE */
	uint32_t site;	  /* of the document; GM_NONE: that of the stack */
	uint64_t address; /* of a block that is handed out */
};

/* The bounds of what could be reserved when a request was refused, as far as is known. */
struct gm_refusal {
	uint64_t least_bytes, most_bytes;
};

/* A segment that was there before the first event. */
struct gm_found_segment {
	uint64_t address, base;
	unsigned pool;
	bool small, expandable;
	unsigned first, count; /* in found[] and found_blocks[] */
};

struct gm_requests {
	int device;
	struct gm_request *events;
	struct gm_request_origin *origins;
	unsigned count, events_room;
	uint32_t blocks; /* the number of blocks' numbers */

	struct gm_model_pool *pools;
	unsigned pools_count, pools_room;

	struct gm_found_segment *segments;
	struct gm_model_found *found;
	uint32_t *found_blocks; /* numbers of those that are used */
	unsigned segments_count, segments_room, found_count, found_room;

	struct gm_refusal *refusals;
	unsigned refusals_count, refusals_room;

	/* the recorded run */
	struct gm_model_change *changes;
	unsigned changes_count, changes_room;
	unsigned changed_at; /* number of events at the last change */
	struct gm_recorded_regions regions; /* without expandable segments */
	uint64_t reserved_bytes, reserved_peak_bytes;
	const char *conf;	    /* its settings; "" default; NULL not known */
	uint64_t least_limit_bytes; /* bounds of the driver's supply, by retries: 0 and */
	uint64_t most_limit_bytes;  /* UINT64_MAX where they do not */
	bool retried;		    /* memory was given back because a request found none */

	bool driver_pool; /* of stream-ordered memory: sizes as asked for, streams, no segments */
	bool peak_sampled; /* the reserve was not asked at each call: its peak is a lower bound */
	bool by_torch;	   /* PyTorch's: its own allocator would have served the same requests */

	/* facts that are not known */
	unsigned pending; /* frees that waited for streams */
	unsigned uncertain_sizes;
	unsigned emptied;     /* calls of empty_cache() that gave something back */
	unsigned unclear;     /* groups of frees that may have been empty_cache or a retry */
	bool streams_unknown; /* they are inferred from segments */
	bool other_streams;   /* and there are more than one, so that frees and captures are unknown
			       */
	bool middle;	      /* something was there before the first event */
	uint32_t last_pool;   /* of the latest block; 0 none */
	const char *gap;      /* the history ends early or cannot be followed: a sentence; NULL */
};

/*
 * The number of a pool and stream, added if it is new. There are at most 4096; more share the last,
 * which is a gap.
 */
unsigned gm_requests_pool(struct gm_requests *requests, uint32_t pool, uint64_t stream);

void gm_requests_add(struct gm_requests *requests, struct gm_request request,
		     struct gm_request_origin origin);

/*
 * A block is requested from that pool of `pools`. If a graph's pool is used again after others, a
 * capture begins, before which torch.cuda.graph() empties the cache; that leaves no trace where
 * there was nothing to give back, and is assumed.
 */
void gm_requests_enter_pool(struct gm_requests *requests, unsigned pool,
			    struct gm_request_origin origin);

/*
 * The recorded run took so much from the driver, or gave it back (negative). Memory that is mapped
 * behind what was taken just before, for the same request, is one change with it.
 */
void gm_requests_change(struct gm_requests *requests, uint64_t address, int64_t bytes);

/*
 * A refused request, for which the driver would have been asked for `taken_bytes`; `free_bytes` is
 * what the device had free then, UINT64_MAX unknown.
 */
void gm_requests_refuse(struct gm_requests *requests, unsigned pool, uint64_t bytes,
			uint64_t taken_bytes, uint64_t free_bytes, struct gm_request_origin origin);

/* A request found no memory until so much was given back: bounds of the limit. */
void gm_requests_retried(struct gm_requests *requests, uint64_t reserved_before_bytes,
			 uint64_t taken_bytes);

void gm_requests_free(struct gm_requests *requests);

#endif

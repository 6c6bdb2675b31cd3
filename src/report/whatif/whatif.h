/*
 * The behaviour of PyTorch's allocator under other settings: the recorded history of one device
 * through the model, once for each setting.
 */
#ifndef GM_REPORT_WHATIF_WHATIF_H
#define GM_REPORT_WHATIF_WHATIF_H

#include "report/doc/doc.h"

enum gm_whatif_fits { GM_FITS_NOT, GM_FITS, GM_FITS_UNKNOWN };

struct gm_whatif_row {
	const char *conf;
	uint64_t allocated_peak_bytes, reserved_peak_bytes;
	uint64_t reserved_low_bytes, reserved_high_bytes; /* over what is not known */
	uint64_t idle_at_peak_bytes;			  /* of the reserved peak */
	uint64_t segments, retries, ooms;
	uint64_t oom_ns;   /* of the first; GM_NO_BYTES none */
	uint32_t oom_site; /* GM_NO_SITE */
	enum gm_whatif_fits fits;
	bool exact;
	const char *why; /* reason why it is not exact, or why the run ends; NULL */
};

struct gm_whatif_options {
	const char **confs; /* NULL: a list of settings, and the best of them */
	unsigned confs_count;
	uint64_t capacity_bytes; /* 0: the device of the run */
	double fraction;	 /* 0: as in the run */
	unsigned version;	 /* of PyTorch, 211 for 2.11; 0: not known */
	int device;		 /* -1: the one with most events */
	bool quick;		 /* one replay for each setting: no row is exact */
	/* a run with the batch `target_batch`, from this one and `other`; 0: as it was recorded */
	double batch, other_batch, target_batch;
	struct gm_doc *other;
};

struct gm_whatif {
	int device;
	unsigned version; /* the rules that were used: 0 those that all known versions share */
	const char *recorded_conf; /* NULL not known */
	bool complete;		   /* the history begins with the run */
	bool traced; /* PyTorch's allocator says sizes, streams and pools; else they are inferred */
	bool reproduced;	   /* under its own setting the model did what the run did */
	uint64_t misplaced; /* blocks that it put elsewhere; GM_NO_BYTES of expandable segments */
	uint64_t recorded_reserved_peak_bytes;
	uint64_t other_bytes; /* of the device that PyTorch does not manage, as far as is known */
	uint64_t lower_bound_bytes; /* no allocator reserves less: the allocated peak, unrounded */
	uint64_t plan_peak_bytes;   /* of a plan that knows the future; GM_NO_BYTES not made */
	uint64_t events;
	double target_batch; /* 0: the recorded one */
	struct gm_whatif_row *rows;
	unsigned rows_count;
	unsigned best;	    /* the row that reserves least and fits */
	const char **notes; /* sentences */
	unsigned notes_count;
};

/* The reasons why a run cannot be replayed, or a setting cannot be used. */
enum gm_whatif_fault { GM_WHATIF_FINE, GM_WHATIF_NO_HISTORY, GM_WHATIF_BAD_SETTING };

/*
 * Replays the document's history. Texts and rows live in the document's zone. NULL with a sentence
 * in `error` and its kind in `*fault` if it cannot be done.
 */
struct gm_whatif *gm_whatif_make(struct gm_doc *doc, const struct gm_whatif_options *options,
				 enum gm_whatif_fault *fault, char *error, size_t error_bytes);

/* The settings that are tried when none is given. */
extern const char *const gm_whatif_list[];
extern const unsigned gm_whatif_list_count;

#endif

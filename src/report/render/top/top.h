/*
 * The screen of `top` as lines of text, for a terminal of any width or for scripts. What changed is
 * told by comparing two samples of the same file.
 */
#ifndef GM_REPORT_RENDER_TOP_TOP_H
#define GM_REPORT_RENDER_TOP_TOP_H

#include "report/doc/options.h"
#include "report/render/text/text.h"

enum gm_top_sort {
	GM_TOP_LIVE,
	GM_TOP_GROWTH,
	GM_TOP_PEAK,
	GM_TOP_TOTAL,
	GM_TOP_COUNT,
	GM_TOP_SORTS
};

/*
 * The contents of the screen, with the figures that are kept from sample to sample. Zero it, then
 * gm_top_init.
 */
struct gm_top {
	enum gm_top_sort sort;
	int device, level, kind; /* -1: all */
	char filter[64];	 /* part of a site's place, "" for all */
	unsigned rows;		 /* most sites listed, 0: as many as fit */
	bool paused;

	/* by site number; a file's site numbers do not change */
	char **places;
	uint64_t *base_bytes; /* live bytes when growth began to be counted */
	unsigned sites;

	/* the sample before this one, and the rates between the two (NAN: only one yet) */
	double sampled_s;
	uint64_t calls, allocated_bytes, freed_bytes;
	double calls_per_s, allocated_per_s, freed_per_s;
};

/* A process of several: its file as it was last read, and the figures that are kept of it. */
struct gm_top_process {
	const char *path;
	struct gm_doc *doc;
	struct gm_top top;
	bool gone; /* it can no longer be read: `doc` is how it was last */
};

void gm_top_init(struct gm_top *top, const struct gm_options *options);
void gm_top_free(struct gm_top *top);

/* Takes a sample; `now_s` is any steady clock. */
void gm_top_sample(struct gm_top *top, struct gm_doc *doc, double now_s);

/* True when the document has sites whose places were not looked up yet. */
bool gm_top_wants_places(const struct gm_top *top, const struct gm_doc *doc);

/* Counts growth from now on; or from the start of the window that is open, for a single sample. */
void gm_top_reset_growth(struct gm_top *top, const struct gm_doc *doc);
void gm_top_growth_by_window(struct gm_top *top, const struct gm_doc *doc);

/* Number of a sort key's name, or -1. */
int gm_top_sort_number(const char *name);

/*
 * Emits at most `height` lines of at most `width` columns. The text is valid during the call.
 */
void gm_top_lines(const struct gm_top *top, struct gm_doc *doc, unsigned width, unsigned height,
		  void (*emit)(void *data, enum gm_style style, const char *line), void *data);

/* Makes `top` show what `like` shows: sorted, filtered and paused as that. */
void gm_top_choose(struct gm_top *top, const struct gm_top *like);

#endif

/*
 * Reading suppressions and applying them to the sites that have something live; see suppress.h.
 */
#include "report/judge/suppress.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct gm_suppressions {
	const char **patterns;
	unsigned count;
	bool shipped;
};

#define MOST_LINES 10000 /* a device or a pipe may have no end */

static const char shipped_text[] =
#include "suppressions.inc"
	;

struct gm_suppressions *gm_suppressions_read(struct gm_zone *zone, struct gm_suppressions *list,
					     const char *path, char *error, size_t error_bytes)
{
	struct gm_suppressions *suppressions =
		list ? list : gm_zone_alloc(zone, 1, sizeof(*suppressions));
	FILE *file = fopen(path, "re");
	unsigned number = 0;
	char line[4096];

	if (!file) {
		snprintf(error, error_bytes, "%s: suppressions cannot be read: %s", path,
			 strerror(errno));
		return NULL;
	}
	while (fgets(line, sizeof(line), file)) {
		char *text = line + strspn(line, " \t");
		const char **slot;

		if (++number > MOST_LINES) {
			snprintf(error, error_bytes,
				 "%s: suppressions cannot be read: more than %d lines", path,
				 MOST_LINES);
			fclose(file);
			return NULL;
		}
		text[strcspn(text, "\r\n")] = '\0';
		for (size_t end = strlen(text); end && strchr(" \t", text[end - 1]);)
			text[--end] = '\0';
		if (*text == '\0' || *text == '#')
			continue;
		if (strncmp(text, "leak:", 5) != 0 || text[5] == '\0') {
			snprintf(error, error_bytes,
				 "%s:%u: a suppression reads \"leak:PATTERN\", this line does not",
				 path, number);
			fclose(file);
			return NULL;
		}
		slot = gm_zone_push(zone, &suppressions->patterns, &suppressions->count,
				    sizeof(*slot));
		*slot = gm_zone_strdup(zone, text + 5);
	}
	/* A directory opens and cannot be read. */
	if (ferror(file)) {
		snprintf(error, error_bytes, "%s: suppressions cannot be read: %s", path,
			 strerror(errno));
		suppressions = NULL;
	}
	fclose(file);
	return suppressions;
}

struct gm_suppressions *gm_suppressions_shipped(struct gm_zone *zone)
{
	struct gm_suppressions *suppressions = gm_zone_alloc(zone, 1, sizeof(*suppressions));
	const char *line = shipped_text;

	suppressions->shipped = true;
	while (*line) {
		size_t length = strcspn(line, "\n");
		const char **slot;

		if (strncmp(line, "leak:", 5) == 0) {
			slot = gm_zone_push(zone, &suppressions->patterns, &suppressions->count,
					    sizeof(*slot));
			*slot = gm_zone_strndup(zone, line + 5, length - 5);
		}
		line += length + (line[length] == '\n');
	}
	return suppressions;
}

/*
 * LeakSanitizer's rule: a pattern may match anywhere unless '^' or '$' ties it. Between the stars
 * stand pieces of plain text, to be found in order; the last one is looked for from the end if
 * tied.
 */
bool gm_suppression_matches(const char *pattern, const char *text)
{
	bool tied = *pattern == '^';
	const char *at = text;

	pattern += tied;
	while (*pattern) {
		size_t length = strcspn(pattern, "*$");
		bool last = pattern[length] == '$' && pattern[length + 1] == '\0';
		const char *found;

		if (pattern[length] == '$' && !last)
			length += 1 + strcspn(pattern + length + 1, "*$");
		if (last) {
			size_t left = strlen(at);

			return left >= length && (!tied || left == length) &&
			       memcmp(at + left - length, pattern, length) == 0;
		}
		found = tied ? (strncmp(at, pattern, length) == 0 ? at : NULL)
			     : memmem(at, strlen(at), pattern, length);
		if (!found)
			return false;
		at = found + length;
		pattern += length;
		tied = false;
		pattern += strspn(pattern, "*");
	}
	return true;
}

/* Patterns whose matches with a frame are kept with the frame, which is part of many stacks. */
#define REMEMBERED 64

struct wanted {
	const char *pattern;
	bool shipped;
};

/* The end of a path that has as many '/' as the pattern; NULL if there are fewer. */
static const char *path_end(const char *pattern, const char *path)
{
	const char *end = path + strlen(path);

	for (; *pattern; pattern++)
		if (*pattern == '/')
			while (end > path && *--end != '/')
				;
	return *end == '/' ? end : NULL;
}

/*
 * A shipped pattern of a path names a library, not a folder that somebody's program lies in: it is
 * looked for at the path's end.
 */
static bool matches_path(const struct wanted *wanted, const char *path)
{
	if (wanted->shipped && *wanted->pattern == '/')
		path = path_end(wanted->pattern, path);
	return path && gm_suppression_matches(wanted->pattern, path);
}

static bool matches_texts(const struct wanted *wanted, const struct gm_frame *frame)
{
	return (frame->function && gm_suppression_matches(wanted->pattern, frame->function)) ||
	       (frame->module && matches_path(wanted, frame->module)) ||
	       (frame->file && matches_path(wanted, frame->file));
}

/* The bits of the remembered patterns that match the frame. */
static uint64_t frame_matches(const struct gm_suppressions *suppressions,
			      const struct gm_frame *frame)
{
	struct gm_frame_memo unknown = {0}, *memo = frame->memo ? frame->memo : &unknown;
	unsigned list = suppressions->shipped;

	if (memo->asked[list])
		return memo->matched[list];
	memo->asked[list] = true;
	for (unsigned p = 0; p < suppressions->count && p < REMEMBERED; p++)
		if (matches_texts(&(struct wanted){suppressions->patterns[p], list}, frame))
			memo->matched[list] |= 1ull << p;
	return memo->matched[list];
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/*
 * Returns the number of a site's innermost frames that shipped patterns are about: the library that
 * allocated, not its callers. The library's own frames and the plumbing below them count, frames
 * above them do not. Shipped patterns are about memory of the driver, because blocks of a
 * framework's allocator are the program's, and about memory that is bounded, because memory that a
 * library keeps on purpose does not grow.
 */
static unsigned library_frames(const struct gm_site *site)
{
	bool reached = false;
	unsigned count = 0;

	if (site->verdict == GM_GROW || site->record.level != GM_LEVEL_DRIVER)
		return 0;
	for (; site->stack && count < site->stack->count; count++) {
		const struct gm_frame *frame = gm_stack_frame(site->stack, count);
		bool own = site->library && frame->module &&
			   strcmp(base_name(frame->module), site->library) == 0;

		if (!own && (reached || !frame->plumbing))
			break;
		reached = own;
	}
	return count;
}

/* A site that a pattern may match. */
struct candidate {
	struct gm_site *site;
	unsigned frames;  /* the innermost ones that the list is about, see library_frames */
	uint64_t matched; /* bits of the remembered patterns that match one of these frames */
};

static bool matches(const struct gm_suppressions *suppressions, unsigned p,
		    const struct candidate *candidate)
{
	struct wanted wanted = {suppressions->patterns[p], suppressions->shipped};
	const struct gm_site *site = candidate->site;

	if (p < REMEMBERED && candidate->matched >> p & 1)
		return true;
	for (unsigned i = 0; p >= REMEMBERED && i < candidate->frames; i++)
		if (matches_texts(&wanted, gm_stack_frame(site->stack, i)))
			return true;
	return !wanted.shipped &&
	       ((site->function && gm_suppression_matches(wanted.pattern, site->function)) ||
		(site->library && gm_suppression_matches(wanted.pattern, site->library)));
}

static unsigned list_candidates(struct gm_doc *doc, const struct gm_suppressions *suppressions,
				struct candidate *candidates)
{
	unsigned count = 0;

	for (unsigned i = 0; i < doc->sites_count; i++) {
		struct candidate one = {.site = &doc->sites[i]};

		if (one.site->verdict < GM_HELD || one.site->suppressed)
			continue;
		if (suppressions->shipped)
			one.frames = library_frames(one.site);
		else if (one.site->stack)
			one.frames = one.site->stack->count;
		for (unsigned k = 0; k < one.frames; k++)
			one.matched |=
				frame_matches(suppressions, gm_stack_frame(one.site->stack, k));
		if (one.frames || !suppressions->shipped)
			candidates[count++] = one;
	}
	return count;
}

void gm_suppress(struct gm_doc *doc, const struct gm_suppressions *suppressions)
{
	struct candidate *candidates =
		gm_realloc(NULL, (doc->sites_count + 1) * sizeof(*candidates));
	unsigned count = list_candidates(doc, suppressions, candidates);

	for (unsigned p = 0; p < suppressions->count; p++) {
		struct gm_suppressed used = {.pattern = suppressions->patterns[p]};

		for (unsigned i = 0; i < count; i++) {
			struct gm_site *site = candidates[i].site;

			if (site->suppressed || !matches(suppressions, p, &candidates[i]))
				continue;
			site->suppressed = used.pattern;
			used.sites++;
			used.bytes += site->record.live_bytes;
			used.count += site->record.live_count;
		}
		if (used.sites) {
			struct gm_suppressed *slot =
				gm_zone_push(&doc->zone, &doc->suppressed, &doc->suppressed_count,
					     sizeof(*slot));
			*slot = used;
		} else if (!suppressions->shipped) {
			const char **slot =
				gm_zone_push(&doc->zone, &doc->unused_suppressions,
					     &doc->unused_suppressions_count, sizeof(*slot));
			*slot = used.pattern;
		}
	}
	free(candidates);
}

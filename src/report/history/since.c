/*
 * The allocations that were made after a mark and are still live: by the serial numbers of live
 * blocks, which every file has, however long ago the mark was. Memory that was freed since is not
 * among them.
 */
#include "report/history/since.h"
#include "report/doc/options.h"
#include "account/kinds.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The mark of that name; "NAME#2" is the second one of it. GM_NO_SITE if there is none. */
static unsigned find_mark(const struct gm_doc *doc, const char *name)
{
	const char *hash = strrchr(name, '#');
	char *end = NULL;
	unsigned long wanted = hash ? strtoul(hash + 1, &end, 10) : 1, seen = 0;
	size_t length = strlen(name);

	for (unsigned i = 0; i < doc->marks_count; i++)
		if (doc->marks[i].name && strcmp(doc->marks[i].name, name) == 0)
			return i; /* also one with a '#' in its name */
	if (!hash || !end || *end || end == hash + 1)
		return GM_NO_SITE;
	length = (size_t)(hash - name);
	for (unsigned i = 0; i < doc->marks_count; i++)
		if (doc->marks[i].name && strncmp(doc->marks[i].name, name, length) == 0 &&
		    !doc->marks[i].name[length] && ++seen == wanted)
			return i;
	return GM_NO_SITE;
}

static bool serial_of(const struct gm_doc *doc, const char *name, uint64_t *serial, char *error,
		      size_t error_bytes)
{
	unsigned mark = find_mark(doc, name);

	if (mark == GM_NO_SITE) {
		snprintf(error, error_bytes, "%s: there is no mark \"%s\" among its %u", doc->path,
			 name, doc->marks_count);
		return false;
	}
	*serial = doc->marks[mark].record.serial;
	return true;
}

bool gm_since_apply(struct gm_doc *doc, const struct gm_options *options, char *error,
		    size_t error_bytes)
{
	uint64_t after = 0, until = UINT64_MAX;

	if (!options->since && !options->until)
		return true;
	if ((options->since && !serial_of(doc, options->since, &after, error, error_bytes)) ||
	    (options->until && !serial_of(doc, options->until, &until, error, error_bytes)))
		return false;
	doc->since = options->since ? options->since : "the start";
	doc->until = options->until;
	for (unsigned i = 0; i < doc->blocks_count; i++) {
		const struct gm_alloc_record copy = gm_doc_block(doc, i), *block = &copy;

		if (block->site == GM_NONE || block->serial <= after || block->serial > until)
			continue;
		doc->sites[block->site].since_bytes += gm_site_share(block);
		doc->sites[block->site].since_count += gm_copies(block->extra);
	}
	return true;
}

/* A block that is the process's to free: what a leak at exit can be. */
static bool owned(const struct gm_alloc_record *block)
{
	return block->site != GM_NONE && block->level == GM_LEVEL_DRIVER &&
	       gm_kind_owned(block->kind);
}

void gm_since_gate_marks(struct gm_doc *doc, uint64_t least_bytes, unsigned warmup, bool framework)
{
	uint64_t *bytes = gm_realloc(NULL, (doc->sites_count + 1) * sizeof(*bytes));

	for (unsigned m = warmup; m < doc->marks_count; m++) {
		uint64_t after = doc->marks[m].record.serial;
		uint64_t until =
			m + 1 < doc->marks_count ? doc->marks[m + 1].record.serial : UINT64_MAX;
		struct gm_gate gate = {
			.gate = gm_doc_printf(doc, "mark:%s",
					      doc->marks[m].name ? doc->marks[m].name : ""),
			.unit = "bytes",
			.limit = least_bytes ? least_bytes - 1 : 0,
			.exit_code = 1,
			.note = "allocated after this mark, before the next, and not freed",
		};
		struct gm_gate *slot;

		/*
		 * Memory that outlived another mark's work and that only the program's end freed
		 * counts as not freed. The last mark's own end cannot be told from the program's.
		 */
		bool last = m + 1 == doc->marks_count;
		unsigned count = last ? doc->blocks_count : gm_work_blocks(doc);

		memset(bytes, 0, (doc->sites_count + 1) * sizeof(*bytes));
		for (unsigned i = 0; i < count; i++) {
			const struct gm_alloc_record copy = gm_work_block(doc, i), *block = &copy;
			bool counts = framework ? block->site != GM_NONE &&
							  block->level != GM_LEVEL_DRIVER
						: owned(block);

			if (counts && block->serial > after && block->serial <= until &&
			    !doc->sites[block->site].suppressed && !doc->sites[block->site].hidden)
				bytes[block->site] += gm_site_share(block);
		}
		for (unsigned i = 0; i < doc->sites_count; i++) {
			uint32_t *site;

			if (!bytes[i] || bytes[i] < least_bytes)
				continue;
			gate.value += bytes[i];
			site = gm_zone_push(&doc->zone, &gate.sites, &gate.sites_count,
					    sizeof(*site));
			*site = i;
		}
		gate.passed = gate.sites_count == 0;
		slot = gm_zone_push(&doc->zone, &doc->gates, &doc->gates_count, sizeof(*slot));
		*slot = gate;
	}
	free(bytes);
}

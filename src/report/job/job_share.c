/*
 * The finding ipc.shared: memory that one process exported and others opened. It is its owner's
 * alone; an opened handle is matched with its owner by the handle's number (gm_ipc_number).
 */
#include "report/job/internal.h"
#include "report/stacks/labels.h"
#include "report/support/format.h"
#include <stdlib.h>
#include <string.h>

/* An exported or opened piece of memory. */
struct piece {
	const struct gm_doc *doc;
	const struct gm_alloc_record *block;
	bool matched;
};

struct pieces {
	struct piece *pieces;
	unsigned count;
};

static void add(struct gm_job *job, struct pieces *to, const struct gm_doc *doc,
		const struct gm_alloc_record *block)
{
	struct piece *piece = gm_zone_push(&job->zone, &to->pieces, &to->count, sizeof(*piece));

	piece->doc = doc;
	piece->block = block;
}

static void collect(struct gm_job *job, struct pieces *exports, struct pieces *imports)
{
	for (unsigned i = 0; i < job->count; i++) {
		const struct gm_doc *doc = job->docs[i];

		for (unsigned k = 0; k < doc->blocks_count && !doc->superseded; k++) {
			const struct gm_alloc_record *block = &doc->blocks[k].record;

			if (block->kind == GM_KIND_IMPORTED)
				add(job, imports, doc, block);
			else if ((block->flags & GM_ALLOC_EXPORTED) && block->ipc)
				add(job, exports, doc, block);
		}
	}
}

static int compare_handles(const void *a, const void *b)
{
	const struct piece *x = a, *y = b;

	return x->block->ipc < y->block->ipc ? -1 : x->block->ipc > y->block->ipc;
}

/* The export of an opened handle, on the same machine; NULL. `exports` are sorted. */
static struct piece *owner_of(struct pieces *exports, const struct piece *import)
{
	struct piece *found, *end;

	if (!import->block->ipc || !exports->count)
		return NULL;
	end = exports->pieces + exports->count;
	found = bsearch(import, exports->pieces, exports->count, sizeof(*found), compare_handles);
	while (found && found > exports->pieces && compare_handles(found - 1, import) == 0)
		found--;
	for (; found && found < end && compare_handles(found, import) == 0; found++)
		if (found->doc != import->doc && (!found->doc->host || !import->doc->host ||
						  strcmp(found->doc->host, import->doc->host) == 0))
			return found;
	return NULL;
}

/* What was found out. */
struct sums {
	uint64_t owned, opened, unmatched;
	unsigned owners, openings, unmatched_count;
	const struct piece *largest_export, *largest_import;
};

static struct sums match(struct pieces *exports, struct pieces *imports)
{
	struct sums sums = {0};

	if (exports->count)
		qsort(exports->pieces, exports->count, sizeof(*exports->pieces), compare_handles);
	for (unsigned i = 0; i < imports->count; i++) {
		struct piece *import = &imports->pieces[i], *owner = owner_of(exports, import);

		if (!owner) {
			sums.unmatched += import->block->bytes;
			sums.unmatched_count++;
			continue;
		}
		sums.opened += import->block->bytes;
		sums.openings++;
		if (!owner->matched) {
			owner->matched = true;
			sums.owned += owner->block->bytes;
			sums.owners++;
		}
		if (!sums.largest_export ||
		    owner->block->bytes > sums.largest_export->block->bytes) {
			sums.largest_export = owner;
			sums.largest_import = import;
		}
	}
	return sums;
}

static const char *place_of(struct gm_job *job, const struct piece *piece)
{
	struct gm_doc *doc = (struct gm_doc *)piece->doc;
	uint32_t site = piece->block->site;

	return site < doc->sites_count
		       ? gm_job_printf(job, " at %s", gm_stack_label(doc, doc->sites[site].stack))
		       : "";
}

/* The processes that own or opened something that was matched; each once, in order. */
static void name_ranks(struct gm_job *job, struct gm_finding *finding, struct pieces *exports,
		       struct pieces *imports)
{
	const struct gm_doc **docs = gm_realloc(NULL, job->count * sizeof(struct gm_doc *));
	unsigned count = 0;

	for (unsigned i = 0; i < job->count; i++) {
		bool has = false;

		for (unsigned k = 0; k < exports->count && !has; k++)
			has = exports->pieces[k].matched && exports->pieces[k].doc == job->docs[i];
		for (unsigned k = 0; k < imports->count && !has; k++)
			has = imports->pieces[k].doc == job->docs[i];
		if (has)
			docs[count++] = job->docs[i];
	}
	gm_job_name_ranks(job, finding, docs, count);
	free(docs);
}

void gm_job_judge_shares(struct gm_job *job)
{
	struct pieces exports = {0}, imports = {0};
	struct gm_finding *finding;
	struct sums sums;
	const char *rest = "";

	collect(job, &exports, &imports);
	if (!imports.count)
		return;
	sums = match(&exports, &imports);
	if (sums.unmatched_count)
		rest = gm_job_printf(
			job,
			"%s%s in %u opened handles %s an owner that is not among these "
			"files, gave it back or passed it by descriptor",
			sums.openings ? "; " : "", gm_job_size(job, sums.unmatched),
			sums.unmatched_count, sums.unmatched_count == 1 ? "has" : "have");
	finding = gm_job_finding_new(job, "ipc.shared", GM_NOTE, GM_HOST,
				     sums.owned + sums.unmatched);
	name_ranks(job, finding, &exports, &imports);
	if (!sums.openings) {
		finding->title = gm_job_printf(job, "%s of other processes' memory is open",
					       gm_job_size(job, sums.unmatched));
		finding->evidence = rest;
		return;
	}
	finding->title =
		gm_job_printf(job,
			      "%s of memory is shared between processes: counted once, as its "
			      "owner's",
			      gm_job_size(job, sums.owned));
	finding->evidence = gm_job_printf(
		job, "%u allocation%s opened %u time%s, the largest: %s of %s%s, opened by %s%s%s",
		sums.owners, gm_s(sums.owners), sums.openings, gm_s(sums.openings),
		gm_job_size(job, sums.largest_export->block->bytes),
		gm_job_who(job, sums.largest_export->doc), place_of(job, sums.largest_export),
		gm_job_who(job, sums.largest_import->doc), place_of(job, sums.largest_import),
		rest);
}

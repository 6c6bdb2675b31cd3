/*
 * Memory that one process exported and others opened: the findings ipc.shared and ipc.freed-open.
 * Shared memory is its owner's alone. An opened handle is matched with its owner by the handle's
 * number (gm_handle_number); one that travelled as a file descriptor has none, and is matched by
 * device and size. Times of processes of one host are compared by CLOCK_MONOTONIC.
 */
#include "report/job/internal.h"
#include "report/stacks/labels.h"
#include "report/stacks/stacks.h"
#include "report/support/format.h"
#include <stdlib.h>
#include <string.h>

/* An exported or opened piece of memory. */
struct piece {
	struct gm_doc *doc;
	const struct gm_alloc_record *block; /* a copy; the job's */
	const struct gm_freed_export_record *freed; /* its owner freed it; NULL: it is live */
	const struct gm_doc *taken_by; /* the process whose handle was matched by size last */
	bool matched;
};

struct pieces {
	struct piece *pieces;
	unsigned count;
};

static struct piece *add(struct gm_job *job, struct pieces *to, struct gm_doc *doc,
			 const struct gm_alloc_record *block)
{
	struct piece *piece = gm_zone_push(&job->zone, &to->pieces, &to->count, sizeof(*piece));
	struct gm_alloc_record *copy = gm_zone_alloc(&job->zone, 1, sizeof(*copy));

	*copy = *block;
	piece->doc = doc;
	piece->block = copy;
	return piece;
}

static void collect(struct gm_job *job, struct pieces *exports, struct pieces *imports)
{
	for (unsigned i = 0; i < job->count; i++) {
		struct gm_doc *doc = job->docs[i];

		if (doc->superseded)
			continue;
		for (unsigned k = 0; k < doc->blocks_count; k++) {
			const struct gm_alloc_record block = gm_doc_block(doc, k);

			if (block.kind == GM_KIND_IMPORTED)
				add(job, imports, doc, &block);
			else if (block.flags & GM_ALLOC_EXPORTED)
				add(job, exports, doc, &block);
		}
		for (unsigned k = 0; k < doc->freed_exports_count; k++)
			if (doc->freed_exports[k].freed_ns <= doc->at_ns)
				add(job, exports, doc, &doc->freed_exports[k].block)->freed =
					&doc->freed_exports[k];
	}
}

/* By number; those without one, whose number is 0, by size. */
static int compare_handles(const void *a, const void *b)
{
	const struct gm_alloc_record *x = ((const struct piece *)a)->block;
	const struct gm_alloc_record *y = ((const struct piece *)b)->block;

	if (x->ipc != y->ipc)
		return x->ipc < y->ipc ? -1 : 1;
	if (x->ipc || x->bytes == y->bytes)
		return 0;
	return x->bytes < y->bytes ? -1 : 1;
}

static uint64_t monotonic(const struct gm_doc *doc, uint64_t ns)
{
	return doc->header->started_monotonic_ns + ns;
}

/* True if the handle can belong to that memory: by host and by time. */
static bool is_possible(const struct piece *export, const struct piece *import)
{
	const struct gm_doc *owner = export->doc, *opener = import->doc;
	uint64_t opened = monotonic(opener, import->block->time_ns), freed;

	if (owner == opener || (owner->host && opener->host && strcmp(owner->host, opener->host)) ||
	    opened < monotonic(owner, export->block->time_ns))
		return false;
	if (!export->freed)
		return true;
	freed = monotonic(owner, export->freed->freed_ns);
	return opened <= freed &&
	       (!opener->header->ended_ns || monotonic(opener, opener->header->ended_ns) > freed);
}

/* True if a handle without a number can belong to that memory and is not matched with it yet. */
static bool is_possible_by_size(const struct piece *export, const struct piece *import)
{
	return export->block->space == GM_SPACE_HANDLE && import->block->space == GM_SPACE_HANDLE &&
	       export->taken_by != import->doc &&
	       gm_same_device(export->doc, export->block->device, import->doc,
			      import->block->device);
}

/*
 * The export of an opened handle, NULL. `exports` are sorted. Of several that are possible by size
 * the first that is live is taken: what is left for freed memory is the least that is open of it.
 */
static struct piece *owner_of(struct pieces *exports, const struct piece *import)
{
	struct piece *found, *end, *freed = NULL;

	if (!exports->count)
		return NULL;
	end = exports->pieces + exports->count;
	found = bsearch(import, exports->pieces, exports->count, sizeof(*found), compare_handles);
	while (found && found > exports->pieces && compare_handles(found - 1, import) == 0)
		found--;
	for (; found && found < end && compare_handles(found, import) == 0; found++) {
		if (!is_possible(found, import) ||
		    (!import->block->ipc && !is_possible_by_size(found, import)))
			continue;
		if (!found->freed)
			break;
		freed = freed ? freed : found;
	}
	found = found && found < end && compare_handles(found, import) == 0 ? found : freed;
	if (found && !import->block->ipc)
		found->taken_by = import->doc;
	return found;
}

/* The sums over the memory that processes share. */
struct sums {
	uint64_t owned, opened, unmatched;
	unsigned owners, openings, by_size, unmatched_count;
	const struct piece *largest_export, *largest_import;
};

static const char *label(struct gm_doc *doc, const struct gm_stack *stack)
{
	return stack ? gm_stack_label(doc, stack) : NULL;
}

static const char *site_label(const struct piece *piece)
{
	uint32_t site = piece->block->site;

	return site < piece->doc->sites_count ? label(piece->doc, piece->doc->sites[site].stack)
					      : NULL;
}

static bool same_label(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

/* The row of memory that was freed and is open, made at its first use. */
static struct gm_freed_share *row_of(struct gm_job *job, const struct piece *export,
				     const struct piece *import)
{
	struct gm_freed_share *row,
		wanted = {
			.owner = export->doc,
			.opener = import->doc,
			.device = export->block->device,
			.kind = export->block->kind,
			.allocated_at = site_label(export),
			.freed_at =
				label(export->doc, gm_doc_stack(export->doc, export->freed->stack)),
			.opened_at = site_label(import),
			.by_size = !import->block->ipc,
			.first_freed_ns = export->freed->freed_ns,
		};

	for (unsigned i = 0; i < job->freed_shares_count; i++) {
		row = &job->freed_shares[i];
		if (row->owner == wanted.owner && row->opener == wanted.opener &&
		    row->device == wanted.device && row->kind == wanted.kind &&
		    row->by_size == wanted.by_size &&
		    same_label(row->allocated_at, wanted.allocated_at) &&
		    same_label(row->freed_at, wanted.freed_at) &&
		    same_label(row->opened_at, wanted.opened_at))
			return row;
	}
	row = gm_zone_push(&job->zone, &job->freed_shares, &job->freed_shares_count, sizeof(*row));
	*row = wanted;
	return row;
}

static void add_freed(struct gm_job *job, struct piece *export, const struct piece *import)
{
	const struct gm_header *header = export->doc->header;
	struct gm_freed_share *row = row_of(job, export, import);

	row->bytes += export->block->bytes;
	row->blocks++;
	if (!export->matched) /* the first that has it open */
		row->distinct_bytes += export->block->bytes;
	if (export->freed->freed_ns < row->first_freed_ns)
		row->first_freed_ns = export->freed->freed_ns;
	row->while_working |= header->serial > export->freed->serial || header->worked;
	export->matched = true;
}

static struct sums match(struct gm_job *job, struct pieces *exports, struct pieces *imports)
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
		import->matched = true;
		if (owner->freed) {
			add_freed(job, owner, import);
			continue;
		}
		sums.opened += import->block->bytes;
		sums.openings++;
		sums.by_size += !import->block->ipc;
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

static const char *place(struct gm_job *job, const char *before, const char *label)
{
	return label ? gm_job_printf(job, "%s%s", before, label) : "";
}

/* ---- freed by the owner and still open ---- */

#define ROWS_TOLD 3u

static int compare_rows(const void *a, const void *b)
{
	const struct gm_freed_share *x = a, *y = b;
	int order = gm_compare_ranks(x->owner, y->owner);

	if (order || x->device != y->device)
		return order ? order : x->device < y->device ? -1 : 1;
	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return gm_compare_ranks(x->opener, y->opener);
}

static const char *tell_row(struct gm_job *job, const struct gm_freed_share *row)
{
	return gm_job_printf(job, "%s%u block%s, %s%s%s, open in %s%s%s",
			     row->by_size ? "at least " : "", row->blocks, gm_s(row->blocks),
			     gm_job_size(job, row->bytes),
			     place(job, " allocated at ", row->allocated_at),
			     place(job, ", freed at ", row->freed_at), gm_job_who(job, row->opener),
			     row->opener->header->ended_ns ? " to its end" : "",
			     place(job, " since ", row->opened_at));
}

/* The rows of one owner and device become one finding. */
static void judge_freed(struct gm_job *job, const struct gm_freed_share *rows, unsigned count)
{
	const struct gm_doc **openers = gm_zone_alloc(&job->zone, count, sizeof(*openers));
	uint64_t bytes = 0;
	unsigned openers_count = 0, k;
	bool while_working = false, by_size = false;
	const char *evidence = "", *who;
	struct gm_finding *finding;

	for (unsigned i = 0; i < count; i++) {
		bytes += rows[i].distinct_bytes;
		while_working |= rows[i].while_working;
		by_size |= rows[i].by_size;
		for (k = 0; k < openers_count && openers[k] != rows[i].opener;)
			k++;
		if (k == openers_count)
			openers[openers_count++] = rows[i].opener;
		if (i < ROWS_TOLD)
			evidence = gm_job_printf(job, "%s%s%s", evidence, i ? "; " : "",
						 tell_row(job, &rows[i]));
	}
	if (count > ROWS_TOLD)
		evidence = gm_job_printf(job, "%s; and %u more", evidence, count - ROWS_TOLD);
	if (by_size)
		evidence = gm_job_printf(
			job, "%s; descriptors have no number: matched by device and size",
			evidence);
	finding = gm_job_finding_new(job, "ipc.freed-open", while_working ? GM_WARNING : GM_NOTE,
				     rows->device, bytes);
	who = gm_job_name_ranks(job, finding, openers, openers_count);
	finding->title =
		gm_job_printf(job, "%s that %s freed %s on the device: %s had the memory open",
			      gm_job_size(job, bytes), gm_job_who(job, rows->owner),
			      while_working ? "stayed" : "at its end stayed", who);
	finding->evidence = evidence;
	gm_job_advise(job, finding,
		      "close the handle where it is open (cudaIpcCloseMemHandle; cuMemUnmap and "
		      "cuMemRelease) before its owner frees the memory: the device gets it back "
		      "only then");
}

static void judge_all_freed(struct gm_job *job)
{
	unsigned first = 0;

	if (job->freed_shares_count)
		qsort(job->freed_shares, job->freed_shares_count, sizeof(*job->freed_shares),
		      compare_rows);
	for (unsigned i = 1; i <= job->freed_shares_count; i++) {
		const struct gm_freed_share *row = &job->freed_shares[first];

		if (i < job->freed_shares_count && job->freed_shares[i].owner == row->owner &&
		    job->freed_shares[i].device == row->device)
			continue;
		judge_freed(job, row, i - first);
		first = i;
	}
}

/* ---- shared ---- */

/* The processes that own or opened something that was matched; each once, in order. */
static void name_ranks(struct gm_job *job, struct gm_finding *finding, struct pieces *exports,
		       struct pieces *imports)
{
	const struct gm_doc **docs = gm_realloc(NULL, job->count * sizeof(struct gm_doc *));
	unsigned count = 0;

	for (unsigned i = 0; i < job->count; i++) {
		bool has = false;

		for (unsigned k = 0; k < exports->count && !has; k++)
			has = exports->pieces[k].matched && !exports->pieces[k].freed &&
			      exports->pieces[k].doc == job->docs[i];
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
	sums = match(job, &exports, &imports);
	judge_all_freed(job);
	if (!sums.openings && !sums.unmatched_count)
		return;
	if (sums.unmatched_count)
		rest = gm_job_printf(
			job,
			"%s%s in %u opened handles %s an owner that is not among these "
			"files, or that cannot be told",
			sums.openings ? "; " : "", gm_job_size(job, sums.unmatched),
			sums.unmatched_count, sums.unmatched_count == 1 ? "has" : "have");
	if (sums.by_size)
		rest = gm_job_printf(job, "; %u passed by descriptor, matched by device and size%s",
				     sums.by_size, rest);
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
		gm_job_who(job, sums.largest_export->doc),
		place(job, " at ", site_label(sums.largest_export)),
		gm_job_who(job, sums.largest_import->doc),
		place(job, " at ", site_label(sums.largest_import)), rest);
}

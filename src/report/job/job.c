/*
 * Comparing the documents of a job: their order, their devices, and which of them count.
 */
#include "report/job/job.h"
#include <ctype.h>
#include <string.h>

int gm_compare_ranks(const struct gm_doc *a, const struct gm_doc *b)
{
	if (a->header->rank != b->header->rank)
		return a->header->rank < b->header->rank ? -1 : 1;
	return strverscmp(a->path, b->path);
}

/* Devices are told apart by their uuid and host; without a uuid by their number. */
bool gm_same_device(const struct gm_doc *a, int device_a, const struct gm_doc *b, int device_b)
{
	const struct gm_device *x = gm_doc_device(a, device_a), *y = gm_doc_device(b, device_b);

	if (a->host && b->host && strcmp(a->host, b->host) != 0)
		return false;
	if (x && y && x->uuid && y->uuid)
		return strcmp(x->uuid, y->uuid) == 0;
	return device_a == device_b;
}

/* True if `path` is `of` with `tail` and a number behind it. */
static bool is_numbered(const char *path, const char *of, const char *tail)
{
	size_t length = strlen(of), more = strlen(tail);

	return strncmp(path, of, length) == 0 && strncmp(path + length, tail, more) == 0 &&
	       isdigit((unsigned char)path[length + more]);
}

static uint64_t ended_realtime(const struct gm_doc *doc)
{
	const struct gm_header *header = doc->header;

	return header->started_realtime_ns + (header->ended_ns > header->last_event_ns
						      ? header->ended_ns
						      : header->last_event_ns);
}

/*
 * True if a document is a copy that does not count: a copy counts neither beside the file of its
 * process nor beside a later copy.
 */
static bool is_copy_of(const struct gm_doc *doc, const struct gm_doc *other)
{
	if (!(doc->header->features & GM_FEATURE_COPY))
		return false;
	if (!(other->header->features & GM_FEATURE_COPY))
		return true;
	if (other->header->last_event_ns == doc->header->last_event_ns)
		return strcmp(other->path, doc->path) > 0;
	return other->header->last_event_ns > doc->header->last_event_ns;
}

/* Returns the reason why `doc` does not count beside `other`; NULL if it does count. */
static const char *superseded_by(const struct gm_doc *doc, const struct gm_doc *other)
{
	bool same_process = doc->header->pid == other->header->pid &&
			    doc->header->started_realtime_ns == other->header->started_realtime_ns;

	if (doc->header->rank != other->header->rank)
		return NULL;
	if (same_process &&
	    (is_numbered(doc->path, other->path, ".snap") || is_copy_of(doc, other)))
		return "snapshot";
	if (same_process && doc->archive && !other->archive)
		return "archive";
	if (other->header->started_realtime_ns <= ended_realtime(doc))
		return NULL;
	if (is_numbered(doc->path, other->path, ".old"))
		return "earlier attempt";
	return doc->header->rank >= 0 && doc->job && other->job && strcmp(doc->job, other->job) == 0
		       ? "earlier attempt"
		       : NULL;
}

unsigned gm_find_superseded(struct gm_doc *const *docs, unsigned count)
{
	unsigned ranks = 0;

	for (unsigned i = 0; i < count; i++) {
		for (unsigned k = i + 1;
		     k < count && docs[k]->header->rank == docs[i]->header->rank; k++) {
			struct gm_doc *a = docs[i], *b = docs[k];

			if (!a->superseded)
				a->superseded = superseded_by(a, b);
			if (!b->superseded)
				b->superseded = superseded_by(b, a);
		}
		ranks += !docs[i]->superseded;
	}
	return ranks;
}

/*
 * Looking for the holders of a document's live blocks (find_holders.h), and counting blocks whose
 * chains read alike as one. While a process runs, a block can be freed and its address be used
 * again: what was found is kept only if the same allocation still lives afterwards.
 */
#include "report/holders/find_holders.h"

#include "holders/holders.h"
#include "report/stacks/labels.h"
#include "report/support/format.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_BLOCKS 200000u /* the largest ones */

/* A live block that is looked for. */
struct sought {
	uint64_t address, bytes, serial;
	uint32_t site;
	uint8_t level;
	bool lives;
	const struct gm_chain *chain;
	const char *text; /* its steps, joined */
};

/* Memory with an address by which a program can hold it. */
static bool is_sought(const struct gm_doc *doc, const struct gm_alloc_record *record)
{
	const struct gm_site *site;

	if (record->site >= doc->sites_count || !record->bytes ||
	    (record->state & 3) != GM_STATE_LIVE)
		return false;
	site = &doc->sites[record->site];
	switch (record->space) {
	case GM_SPACE_POINTER:
	case GM_SPACE_ARRAY:
		return !site->hidden && !site->divided;
	case GM_SPACE_TORCH:
	case GM_SPACE_CUSTOM:
		return !site->hidden;
	default:
		return false;
	}
}

/* A framework's block that begins where its segment does is what the program holds. */
static int by_address(const void *a, const void *b)
{
	const struct sought *x = a, *y = b;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return (int)y->level - (int)x->level;
}

static int by_bytes(const void *a, const void *b)
{
	const struct sought *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? 1 : -1;
	return by_address(a, b);
}

static struct sought *collect(const struct gm_doc *doc, uint32_t *count)
{
	struct sought *sought = gm_realloc(NULL, (doc->blocks_count + 1ul) * sizeof(*sought));
	uint32_t all = 0, kept = 0;

	for (unsigned i = 0; i < doc->blocks_count; i++) {
		const struct gm_alloc_record copy = gm_doc_block(doc, i), *record = &copy;

		if (is_sought(doc, record))
			sought[all++] = (struct sought){.address = record->key,
							.bytes = record->bytes,
							.serial = record->serial,
							.site = record->site,
							.level = record->level};
	}
	qsort(sought, all, sizeof(*sought), by_address);
	for (uint32_t i = 0; i < all; i++)
		if (!kept || sought[kept - 1].address != sought[i].address)
			sought[kept++] = sought[i];
	qsort(sought, kept, sizeof(*sought), by_bytes);
	*count = kept < MOST_BLOCKS ? kept : MOST_BLOCKS;
	return sought;
}

/* Marks those whose allocation is still in the file, which the process goes on to write. */
static void find_living(const struct gm_doc *doc, struct sought *sought, uint32_t count, bool still)
{
	char error[256];
	struct gm_reader *reader = still ? NULL : gm_reader_open(doc->path, error, sizeof(error));
	uint32_t records = reader ? gm_reader_count(reader, GM_TABLE_ALLOCS) : 0;

	qsort(sought, count, sizeof(*sought), by_address);
	for (uint32_t i = 0; i < count; i++)
		sought[i].lives = still;
	for (uint32_t i = 0; i < records; i++) {
		struct gm_alloc_record record;
		struct sought key, *found;

		if (!gm_reader_get(reader, GM_TABLE_ALLOCS, i, &record, sizeof(record)) ||
		    (record.state & 3) != GM_STATE_LIVE)
			continue;
		key = (struct sought){.address = record.key, .level = record.level};
		found = bsearch(&key, sought, count, sizeof(*sought), by_address);
		if (found && found->serial == record.serial)
			found->lives = true;
	}
	if (reader)
		gm_reader_close(reader);
}

/* The library that allocates for itself, and keeps the address in memory of its own. */
static const char *keeper_of(const struct gm_site *site)
{
	const char *toolkit = gm_stack_toolkit(site->stack);

	return toolkit ? toolkit : strcmp(site->category, "workspace") == 0 ? site->library : NULL;
}

static const char *note_of(struct gm_doc *doc, const struct gm_site *site, enum gm_chain_end end)
{
	static const char *const notes[] = {
		[GM_CHAIN_UNSURE] = "one link is a word of a structure that is not known, or on a "
				    "frame's evaluation stack",
		[GM_CHAIN_WEAK] = "only a weak reference was found, which keeps nothing alive",
		[GM_CHAIN_UNKNOWN] = "what refers to the first object was not found: C code, or a "
				     "structure that is not known",
		[GM_CHAIN_CHANGED] = "the references changed while they were read",
		[GM_CHAIN_NONE] =
			"neither a Python object nor a global variable of native code was found "
			"to have its address",
		[GM_CHAIN_CPP] = "it is held by C++; what holds the first object was not found",
		[GM_CHAIN_LOOSE] = "objects of the heap on the way have no class that tells what "
				   "they are",
		[GM_CHAIN_NOTED] = "native code has the address of the Python object, which may "
				   "be a note of it"};
	const char *keeper = end == GM_CHAIN_NONE ? keeper_of(site) : NULL;

	if (keeper)
		return gm_doc_printf(doc,
				     "the library %s, which allocated it, holds it: no other "
				     "reference was found",
				     keeper);
	return end < sizeof(notes) / sizeof(*notes) ? notes[end] : NULL;
}

/*
 * Returns the number in "list (412 entries)", and what follows that bracket in `rest`. NULL for a
 * step without.
 */
static const char *size_in(const char *step, uint64_t *size, const char **rest)
{
	for (const char *at = strstr(step, " ("); at; at = strstr(at + 1, " (")) {
		char *end;

		*size = strtoull(at + 2, &end, 10);
		if (end > at + 2 && strncmp(end, " entr", 5) == 0 && strchr(end, ')')) {
			*rest = strchr(end, ')') + 1;
			return at + 2;
		}
	}
	return NULL;
}

/* The steps as one text, by which chains are compared: without the sizes of containers. */
static const char *join(struct gm_doc *doc, const struct gm_chain *chain)
{
	size_t bytes = 16;
	char *text;

	for (unsigned i = 0; i < chain->count; i++)
		bytes += strlen(chain->steps[i]) + 1;
	text = gm_zone_alloc(&doc->zone, bytes, 1);
	text[0] = (char)('A' + chain->end);
	bytes = 1;
	for (unsigned i = 0; i < chain->count; i++) {
		const char *step = chain->steps[i], *rest, *number;
		uint64_t size;

		number = size_in(step, &size, &rest);
		bytes += (size_t)sprintf(text + bytes, "%.*s%s\n",
					 (int)(number ? number - step : (long)strlen(step)), step,
					 number ? rest : "");
	}
	return text;
}

static int by_chain(const void *a, const void *b)
{
	const struct sought *x = a, *y = b;
	int order = strcmp(x->text, y->text);

	if (x->site != y->site)
		return x->site < y->site ? -1 : 1;
	return order ? order : by_address(a, b);
}

static int by_most(const void *a, const void *b)
{
	const struct gm_holder *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? 1 : -1;
	return x->site < y->site ? -1 : x->site > y->site;
}

/* Returns the step of `count` chains that differ in its container's size: "list (2 to 6 entries)".
 */
static const char *step_of_sizes(struct gm_doc *doc, const struct sought *first, uint32_t count,
				 unsigned step)
{
	const char *text = first->chain->steps[step], *rest = "", *number = NULL;
	uint64_t size, least = UINT64_MAX, most = 0;

	for (uint32_t k = 0; k < count; k++) {
		number = size_in(first[k].chain->steps[step], &size, &rest);
		if (!number)
			return text;
		text = first[k].chain->steps[step];
		least = size < least ? size : least;
		most = size > most ? size : most;
	}
	return least == most ? text
			     : gm_doc_printf(doc, "%.*s%llu to %llu entries)%s",
					     (int)(number - text), text, (unsigned long long)least,
					     (unsigned long long)most, rest);
}

/* Indices and keys are shown where all blocks of the chain have the same. */
static void add_steps(struct gm_doc *doc, struct gm_holder *holder, const struct sought *first,
		      uint32_t count)
{
	const struct gm_chain *chain = first->chain;

	holder->chain = gm_zone_alloc(&doc->zone, chain->count + 1ul, sizeof(*holder->chain));
	holder->chain_count = chain->count;
	for (unsigned i = 0; i < chain->count; i++) {
		bool same = true;

		for (uint32_t k = 1; k < count && same; k++)
			same = strcmp(first[k].chain->exact[i], chain->exact[i]) == 0;
		holder->chain[i] = gm_zone_strdup(
			&doc->zone, same ? chain->exact[i] : step_of_sizes(doc, first, count, i));
	}
}

static void add_holder(struct gm_doc *doc, const struct sought *first, uint32_t count)
{
	struct gm_holder *holder =
		gm_zone_push(&doc->zone, &doc->holders, &doc->holders_count, sizeof(*holder));
	enum gm_chain_end end = first->chain->end;

	holder->site = first->site;
	holder->blocks = count;
	for (uint32_t i = 0; i < count; i++)
		holder->bytes += first[i].bytes;
	holder->garbage = end == GM_CHAIN_GARBAGE;
	holder->complete = end == GM_CHAIN_COMPLETE || end == GM_CHAIN_GARBAGE;
	holder->note = note_of(doc, &doc->sites[holder->site], end);
	add_steps(doc, holder, first, count);
}

static void group(struct gm_doc *doc, struct sought *sought, uint32_t count)
{
	uint32_t alive = 0;

	for (uint32_t i = 0; i < count; i++)
		if (sought[i].lives)
			sought[alive++] = sought[i];
	for (uint32_t i = 0; i < alive; i++)
		sought[i].text = join(doc, sought[i].chain);
	qsort(sought, alive, sizeof(*sought), by_chain);
	for (uint32_t from = 0, to; from < alive; from = to) {
		for (to = from + 1; to < alive && sought[to].site == sought[from].site &&
				    strcmp(sought[to].text, sought[from].text) == 0;
		     to++)
			;
		add_holder(doc, &sought[from], to - from);
	}
	if (doc->holders_count)
		qsort(doc->holders, doc->holders_count, sizeof(*doc->holders), by_most);
}

static struct gm_memory *open_core(const struct gm_doc *doc, const char *core, char *error,
				   size_t error_bytes)
{
	struct gm_memory *memory = gm_memory_of_core(core, error, error_bytes);
	int pid = memory ? gm_memory_pid(memory) : 0;

	if (!memory || !pid || pid == (int)doc->header->pid)
		return memory;
	snprintf(error, error_bytes, "%s is of process %d, %s of process %u", core, pid, doc->path,
		 doc->header->pid);
	gm_memory_close(memory);
	return NULL;
}

static struct gm_memory *open_memory(const struct gm_doc *doc, const char *core, char *error,
				     size_t error_bytes)
{
	int pid = (int)doc->header->pid;

	if (core)
		return open_core(doc, core, error, error_bytes);
	if (strcmp(doc->end, "running") == 0 && kill(pid, 0) != 0 && errno == ESRCH)
		snprintf(error, error_bytes,
			 "%s is a copy; the process that it is of, %d, does not run any more",
			 doc->path, pid);
	else if (strcmp(doc->end, "running") == 0)
		return gm_memory_of_process(pid, error, error_bytes);
	else
		snprintf(error, error_bytes,
			 "process %d of %s does not run any more%s: holders are found in a running "
			 "process, or in a core file of it (gpumem-report holders CORE %s)",
			 pid, doc->path, strcmp(doc->end, "killed") == 0 ? " here" : "", doc->path);
	return NULL;
}

/* Looks in `memory`, which it closes. `still`: the file does not change either. */
static bool find_in(struct gm_doc *doc, struct gm_memory *memory, bool still, const char *when,
		    char *error, size_t error_bytes)
{
	struct gm_holders *holders;
	struct sought *sought;
	uint64_t *addresses;
	uint32_t count;

	if (!memory)
		return false;
	sought = collect(doc, &count);
	addresses = gm_realloc(NULL, (count + 1ul) * sizeof(*addresses));
	for (uint32_t i = 0; i < count; i++)
		addresses[i] = sought[i].address;
	holders = gm_holders_find(memory, addresses, count, error, error_bytes);
	if (holders) {
		struct gm_holders_figures figures = gm_holders_figures(holders);

		for (uint32_t i = 0; i < count; i++)
			sought[i].chain = gm_holders_chain(holders, i);
		find_living(doc, sought, count, still);
		doc->holders = NULL;
		doc->holders_count = 0;
		group(doc, sought, count);
		doc->holders_when = when;
		doc->holders_python =
			figures.minor ? gm_doc_printf(doc, "3.%u", figures.minor) : NULL;
		doc->holders_objects = figures.objects;
		doc->holders_whole = figures.whole;
		doc->holders_ns = GM_NO_BYTES;
		gm_holders_free(holders);
	}
	free(addresses);
	free(sought);
	gm_memory_close(memory);
	return holders != NULL;
}

bool gm_find_holders(struct gm_doc *doc, const char *core, char *error, size_t error_bytes)
{
	return find_in(doc, open_memory(doc, core, error, error_bytes), core != NULL,
		       core ? "core" : "now", error, error_bytes);
}

bool gm_find_holders_of_copy(struct gm_doc *doc, int pid, const char *moment, char *error,
			     size_t error_bytes)
{
	struct gm_memory *memory = gm_memory_of_process(pid, error, error_bytes);

	if (memory)
		gm_memory_set_still(memory);
	return find_in(doc, memory, true, moment, error, error_bytes);
}

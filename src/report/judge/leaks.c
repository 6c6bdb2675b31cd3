/*
 * Grouping growing sites into leaks, see leaks.h.
 */
#include "report/judge/leaks.h"
#include "report/stacks/labels.h"
#include "report/support/memory.h"
#include <stdlib.h>
#include <string.h>

#define WORTH_BYTES (1ull << 20) /* callers that each lose as much are leaks of their own */

struct member {
	uint64_t function, caller; /* 0: none */
	uint64_t leak;		   /* key that tells leaks apart */
	uint64_t bytes;
	uint32_t site;
};

static uint64_t hash_text(uint64_t hash, const char *text)
{
	for (; text && *text; text++)
		hash = (hash ^ (unsigned char)*text) * 1099511628211u; /* FNV-1a */
	return hash;
}

static uint64_t hash_number(uint64_t hash, uint64_t number)
{
	return (hash ^ number) * 1099511628211u;
}

static uint64_t function_of(const struct gm_frame *frame)
{
	uint64_t hash =
		hash_text(14695981039346656037u, frame->python ? frame->file : frame->module);

	return frame->function ? hash_text(hash, frame->function)
			       : hash_number(hash, frame->offset);
}

bool gm_grew_in_backward(const struct gm_site *site)
{
	if (!site->stack || strcmp(site->phase, "backward") != 0)
		return false;
	for (unsigned i = 0; i < site->stack->count; i++)
		if (gm_stack_frame(site->stack, i)->python)
			return false;
	return true;
}

/* Without names a function is known by its caller's frame: its own addresses are as many as its
 * lines. */
static struct member member_of(const struct gm_site *site, uint32_t index)
{
	const struct gm_site_figures *record = &site->record;
	const struct gm_frame *frame = gm_stack_label_frame(site->stack);
	unsigned at = gm_stack_label_index(site->stack);
	const struct gm_frame *caller = frame ? gm_stack_next_own(site->stack, &at) : NULL;
	struct member member = {.bytes = site->work_bytes, .site = index};
	uint64_t class = hash_number(hash_number(record->level, record->kind),
				     (uint64_t)(int64_t)record->device);

	if (gm_grew_in_backward(site)) {
		member.function = hash_text(class, site->phase);
		return member;
	}
	if (!frame) {
		member.function = hash_number(class, site->key);
		return member;
	}
	if (!frame->function && caller) {
		frame = caller;
		caller = gm_stack_next_own(site->stack, &at);
	}
	member.function = hash_number(function_of(frame), class);
	member.caller = caller ? function_of(caller) : 0;
	return member;
}

static int compare_functions(const void *a, const void *b)
{
	const struct member *x = a, *y = b;

	if (x->function != y->function)
		return x->function < y->function ? -1 : 1;
	if (x->caller != y->caller)
		return x->caller < y->caller ? -1 : 1;
	return x->site < y->site ? -1 : x->site > y->site;
}

/* In order of functions and callers: true if each caller in [from, to) loses enough to be told
 * apart. */
static bool callers_count(const struct member *members, unsigned from, unsigned to)
{
	uint64_t bytes = 0;

	for (unsigned i = from; i < to; i++) {
		bytes += members[i].bytes;
		if (i + 1 < to && members[i + 1].caller == members[i].caller)
			continue;
		if (bytes < WORTH_BYTES)
			return false;
		bytes = 0;
	}
	return true;
}

static void tell_apart(struct member *members, unsigned count)
{
	unsigned first = 0;

	for (unsigned i = 1; i <= count; i++) {
		bool apart;

		if (i < count && members[i].function == members[first].function)
			continue;
		apart = callers_count(members, first, i);
		for (unsigned k = first; k < i; k++)
			members[k].leak =
				apart ? hash_number(members[k].function, members[k].caller)
				      : members[k].function;
		first = i;
	}
}

static int compare_members(const void *a, const void *b)
{
	const struct member *x = a, *y = b;

	if (x->leak != y->leak)
		return x->leak < y->leak ? -1 : 1;
	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? 1 : -1;
	return x->site < y->site ? -1 : x->site > y->site;
}

static int compare_leaks(const void *a, const void *b)
{
	const struct gm_leak *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? 1 : -1;
	return x->site < y->site ? -1 : x->site > y->site;
}

static struct gm_leak *gather(struct gm_doc *doc, const struct member *members, unsigned count,
			      unsigned *leaks_count)
{
	struct gm_leak *leaks = NULL, *leak = NULL;

	*leaks_count = 0;
	for (unsigned i = 0; i < count; i++) {
		const struct gm_site *site = &doc->sites[members[i].site];

		if (!i || members[i].leak != members[i - 1].leak) {
			leak = gm_zone_push(&doc->zone, &leaks, leaks_count, sizeof(*leak));
			*leak = (struct gm_leak){.site = members[i].site, .first_ns = UINT64_MAX};
		}
		*(uint32_t *)gm_zone_push(&doc->zone, &leak->sites, &leak->sites_count,
					  sizeof(uint32_t)) = members[i].site;
		leak->bytes += site->work_bytes;
		leak->blocks += site->work_count;
	}
	return leaks;
}

static int compare_numbers(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static uint64_t distinct(uint64_t *numbers, unsigned count)
{
	uint64_t found = count > 0;

	if (count)
		qsort(numbers, count, sizeof(*numbers), compare_numbers);
	for (unsigned i = 1; i < count; i++)
		found += numbers[i] != numbers[i - 1];
	return found;
}

/* Finds the place and time at which the blocks of a leak were allocated. */
static void trace(const struct gm_doc *doc, struct gm_leak *leak, const uint32_t *leak_of,
		  uint32_t number)
{
	uint64_t *threads = gm_realloc(NULL, ((size_t)leak->blocks + 1) * sizeof(*threads));
	uint64_t *streams = gm_realloc(NULL, ((size_t)leak->blocks + 1) * sizeof(*streams));
	unsigned count = 0;

	for (unsigned i = 0; i < gm_work_blocks(doc) && count < leak->blocks; i++) {
		const struct gm_alloc_record copy = gm_work_block(doc, i), *block = &copy;

		if (block->site == GM_NONE || leak_of[block->site] != number)
			continue;
		threads[count] = block->thread;
		streams[count++] = block->stream;
		if (block->time_ns < leak->first_ns)
			leak->first_ns = block->time_ns;
		if (block->time_ns > leak->last_ns)
			leak->last_ns = block->time_ns;
	}
	leak->threads = distinct(threads, count);
	leak->streams = distinct(streams, count);
	free(threads);
	free(streams);
}

struct gm_leak *gm_find_leaks(struct gm_doc *doc, unsigned *count)
{
	struct member *members = gm_realloc(NULL, (doc->sites_count + 1) * sizeof(*members));
	uint32_t *leak_of = gm_realloc(NULL, (doc->sites_count + 1) * sizeof(*leak_of));
	struct gm_leak *leaks;
	unsigned found = 0;

	for (unsigned i = 0; i < doc->sites_count; i++) {
		const struct gm_site *site = &doc->sites[i];

		leak_of[i] = GM_NONE;
		if (site->verdict == GM_GROW && site->work_bytes && !site->hidden &&
		    !site->suppressed)
			members[found++] = member_of(site, i);
	}
	if (found)
		qsort(members, found, sizeof(*members), compare_functions);
	tell_apart(members, found);
	if (found)
		qsort(members, found, sizeof(*members), compare_members);
	leaks = gather(doc, members, found, count);
	if (*count)
		qsort(leaks, *count, sizeof(*leaks), compare_leaks);
	for (unsigned i = 0; i < *count; i++)
		for (unsigned k = 0; k < leaks[i].sites_count; k++)
			leak_of[leaks[i].sites[k]] = i;
	for (unsigned i = 0; i < *count; i++)
		trace(doc, &leaks[i], leak_of, i);
	free(members);
	free(leak_of);
	return leaks;
}

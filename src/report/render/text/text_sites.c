/*
 * Lists of sites: `sites` sorted by a key of the table below, and `leaks` by verdict. Each site is
 * a line of figures and its stack.
 */
#include "report/render/text/text_sites.h"
#include "report/doc/enum_names.h"
#include "report/render/text/text.h"
#include "report/render/text/text_holders.h"
#include "report/render/text/text_stack.h"
#include "report/support/format.h"
#include "report/support/print.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define FIGURES 14 /* indent of a site's figures and stack */

static uint64_t by_live(const struct gm_site *site)
{
	return site->record.live_bytes;
}

static uint64_t by_peak(const struct gm_site *site)
{
	return site->record.peak_bytes;
}

static uint64_t by_total(const struct gm_site *site)
{
	return site->record.allocated_bytes;
}

static uint64_t by_count(const struct gm_site *site)
{
	return site->record.allocations;
}

/* Bytes that came and went again. */
static uint64_t by_churn(const struct gm_site *site)
{
	return site->record.allocated_bytes < site->record.freed_bytes
		       ? site->record.allocated_bytes
		       : site->record.freed_bytes;
}

static uint64_t by_share_of_peak(const struct gm_site *site)
{
	return site->record.bytes_at_peak;
}

/* The keys of --sort, and the one of --at peak. A new key is a row. */
static const struct key {
	const char *name, *title;
	uint64_t (*value)(const struct gm_site *site);
	bool bytes;
} keys[] = {
	{"live", "live now", by_live, true},
	{"peak", "own peak", by_peak, true},
	{"total", "allocated", by_total, true},
	{"count", "allocations", by_count, false},
	{"churn", "allocated and freed again", by_churn, true},
};

static uint64_t by_since(const struct gm_site *site)
{
	return site->since_bytes;
}

static bool has_since(const struct gm_site *site)
{
	return site->since_count && !site->suppressed;
}

static const struct key since_key = {"since", "allocated since", by_since, true};

static const struct key at_peak_key = {"at peak", "at the peak", by_share_of_peak, true};

const char *gm_sort_keys(void)
{
	return "live, peak, total, count, churn";
}

struct entry {
	const struct gm_site *site;
	uint64_t value;
};

static int compare_entries(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->value != y->value)
		return x->value < y->value ? 1 : -1;
	return strcmp(x->site->id, y->site->id);
}

static struct entry *sorted(const struct gm_doc *doc, const struct key *key,
			    bool (*wanted)(const struct gm_site *site), unsigned *count)
{
	struct entry *entries = gm_realloc(NULL, doc->sites_count * sizeof(*entries));

	*count = 0;
	for (unsigned i = 0; i < doc->sites_count; i++) {
		const struct gm_site *site = &doc->sites[i];

		if (!site->hidden && site->record.allocations && wanted(site))
			entries[(*count)++] = (struct entry){site, key->value(site)};
	}
	if (*count)
		qsort(entries, *count, sizeof(*entries), compare_entries);
	return entries;
}

static bool any_site(const struct gm_site *site)
{
	(void)site;
	return true;
}

static bool at_the_peak(const struct gm_site *site)
{
	return site->record.bytes_at_peak > 0;
}

static enum gm_style verdict_style(enum gm_verdict verdict)
{
	return verdict == GM_GROW ? GM_RED : verdict == GM_HELD ? GM_YELLOW : GM_DIM;
}

/* "12.0 KiB  device 0  device  held  12 of 20 allocations live, ..." */
static void print_site(struct gm_out *out, const struct gm_doc *doc, const struct gm_site *site,
		       const struct key *key)
{
	const struct gm_site_figures *record = &site->record;
	char text[GM_FORMAT_BYTES], live[GM_FORMAT_BYTES], peak[GM_FORMAT_BYTES], device[24];
	char failed[48] = "", why[512], error[GM_FORMAT_BYTES + 24] = "";
	char counts[4][GM_FORMAT_BYTES], late[GM_FORMAT_BYTES + 48] = "";
	unsigned column = 12;
	bool category = strcmp(site->category, "other") != 0;

	gm_print(out, GM_BOLD, "\n  %10s",
		 key->bytes ? gm_format_size(text, key->value(site))
			    : gm_format_count(text, key->value(site)));
	column += (unsigned)gm_printf(out->file, "  %s, %s  ",
				    record->level == GM_LEVEL_DRIVER  ? gm_kind_name(record->kind)
				    : record->level == GM_LEVEL_TORCH ? "PyTorch block"
								      : "pool block",
				    gm_device_name(device, record->device));
	gm_print(out, verdict_style(site->verdict), "%s", gm_verdict_name(site->verdict));
	column += (unsigned)strlen(gm_verdict_name(site->verdict));
	snprintf(why, sizeof(why), " (%s)", site->why ? site->why : "");
	gm_wrap_from(out, column, FIGURES, site->verdict != GM_RELEASED ? why : "");
	gm_printf(out->file, "%*s", FIGURES, "");
	if (doc->header->sample_bytes && record->live_bytes)
		snprintf(error, sizeof(error), " (an estimate, \302\261 %s)",
			 gm_format_size(text, gm_site_error(doc, site, record->live_bytes)));
	if (record->failed_frees)
		snprintf(failed, sizeof(failed), ", %u free%s failed", record->failed_frees,
			 record->failed_frees == 1 ? "" : "s");
	if (site->work_count > record->live_count)
		snprintf(late, sizeof(late), " (%s as the program ended)",
			 gm_format_count(counts[3], site->work_count - record->live_count));
	gm_wrapf(out, FIGURES,
		 "live %s%s in %s, peak %s, allocated %s in %s call%s, %s freed%s%s%s%s  [%s]",
		 gm_format_size(live, record->live_bytes), error,
		 gm_format_count(counts[0], record->live_count),
		 gm_format_size(peak, record->peak_bytes),
		 gm_format_size(text, record->allocated_bytes),
		 gm_format_count(counts[1], record->allocations), gm_s(record->allocations),
		 gm_format_count(counts[2], record->frees), late, failed, category ? ", " : "",
		 category ? site->category : "", site->id);
	if (site->suppressed)
		gm_print(out, GM_DIM, "              suppressed by leak:%s\n", site->suppressed);
	gm_print_stack(out, site->stack, FIGURES);
}

static void print_entries(struct gm_out *out, const struct gm_doc *doc,
			  const struct entry *entries, unsigned count, const struct key *key)
{
	uint64_t rest = 0;
	char text[GM_FORMAT_BYTES];

	for (unsigned i = 0; i < count && i < out->top; i++)
		print_site(out, doc, entries[i].site, key);
	for (unsigned i = out->top; i < count; i++)
		rest += entries[i].value;
	if (count > out->top)
		gm_printf(out->file, "\n  %u more site%s with %s (--top)\n", count - out->top,
			count - out->top == 1 ? "" : "s",
			key->bytes ? gm_format_size(text, rest) : gm_format_count(text, rest));
}

bool gm_text_sites(struct gm_out *out, struct gm_doc *doc, const char *sort, bool at_peak)
{
	const struct key *key = at_peak ? &at_peak_key : NULL;
	struct entry *entries;
	unsigned count;

	for (size_t i = 0; !key && i < sizeof(keys) / sizeof(keys[0]); i++)
		if (strcmp(keys[i].name, sort ? sort : "live") == 0)
			key = &keys[i];
	if (!key)
		return false;
	entries = sorted(doc, key, at_peak ? at_the_peak : any_site, &count);
	gm_print(out, GM_BOLD, "%u site%s%s%s\n", count, gm_s(count),
		 at_peak ? " had memory at the peak, the largest first" : ", by ",
		 at_peak ? "" : key->title);
	print_entries(out, doc, entries, count, key);
	free(entries);
	return true;
}

static bool grows(const struct gm_site *site)
{
	return site->verdict == GM_GROW && !site->suppressed;
}

static bool held(const struct gm_site *site)
{
	return site->verdict == GM_HELD && !site->suppressed;
}

/* Held and leaked at exit by the definition of contract.md. */
static bool left_at_exit(const struct gm_site *site)
{
	return held(site) && site->exit_count > 0;
}

static bool held_otherwise(const struct gm_site *site)
{
	return held(site) && site->exit_count == 0;
}

static bool cached(const struct gm_site *site)
{
	return site->verdict == GM_CACHED && !site->suppressed;
}

static bool suppressed(const struct gm_site *site)
{
	return site->suppressed;
}

/* The sections of `leaks`; `all` are only shown with --all. */
static const struct {
	const char *title;
	bool (*wanted)(const struct gm_site *site);
	bool all;
} sections[] = {
	{"Growing", grows, false},	  {"Not freed at the end", left_at_exit, false},
	{"Held", held_otherwise, true},	  {"Cached by a pool or framework", cached, true},
	{"Suppressed", suppressed, true},
};

static uint64_t suppressed_at_exit(const struct gm_doc *doc)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < doc->sites_count; i++)
		if (doc->sites[i].suppressed && !doc->sites[i].hidden)
			bytes += doc->sites[i].exit_bytes;
	return bytes;
}

static void print_verdict(struct gm_out *out, const struct gm_doc *doc)
{
	char size[GM_FORMAT_BYTES];

	if (doc->exit_bytes == GM_NO_BYTES) {
		const char *why = gm_exit_unknown(doc);

		gm_print(out, GM_BOLD, "%c%s: leaks at exit are not judged.\n",
			 toupper((unsigned char)*why), why + 1);
	} else if (doc->exit_count) {
		gm_print(out, GM_BOLD, "%s in %llu allocation%s not freed at the end",
			 gm_format_size(size, doc->exit_bytes), (unsigned long long)doc->exit_count,
			 doc->exit_count == 1 ? "" : "s");
		if (suppressed_at_exit(doc))
			gm_print(out, GM_PLAIN, ", %s of it suppressed",
				 gm_format_size(size, suppressed_at_exit(doc)));
		if (doc->cached_bytes)
			gm_print(out, GM_PLAIN, ", of which %s are a pool's or framework's cache",
				 gm_format_size(size, doc->cached_bytes));
		gm_printf(out->file, doc->framework
					   ? "; with a caching framework only growth is a leak.\n"
					   : ".\n");
	} else {
		gm_print(out, GM_BOLD, "Nothing was left at the end.\n");
	}
}

/* leaks --since: what was allocated between two marks and is still live, whatever its verdict. */
static void print_since(struct gm_out *out, struct gm_doc *doc)
{
	unsigned count;
	struct entry *entries = sorted(doc, &since_key, has_since, &count);
	uint64_t bytes = 0, blocks = 0;
	char size[GM_FORMAT_BYTES];

	for (unsigned i = 0; i < count; i++) {
		bytes += entries[i].value;
		blocks += entries[i].site->since_count;
	}
	gm_print(out, GM_BOLD, "%s in %llu block%s", gm_format_size(size, bytes),
		 (unsigned long long)blocks, blocks == 1 ? "" : "s");
	gm_printf(out->file, " allocated after %s%s%s still live, from %u site%s.\n", doc->since,
		doc->until ? ", before " : "", doc->until ? doc->until : "", count,
		count == 1 ? "" : "s");
	print_entries(out, doc, entries, count, &since_key);
	free(entries);
}

void gm_text_leaks(struct gm_out *out, struct gm_doc *doc, bool all)
{
	unsigned left_out = 0;

	if (doc->since) {
		print_since(out, doc);
		return;
	}
	print_verdict(out, doc);
	for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++) {
		unsigned count;
		struct entry *entries = sorted(doc, &keys[0], sections[i].wanted, &count);

		if (count && (all || !sections[i].all)) {
			gm_heading(out, "%s: %u site%s", sections[i].title, count,
				   count == 1 ? "" : "s");
			print_entries(out, doc, entries, count, &keys[0]);
		} else {
			left_out += count;
		}
		free(entries);
	}
	if (left_out)
		gm_printf(out->file, "\n%u site%s held, cached or suppressed (--all)\n", left_out,
			left_out == 1 ? " is" : "s are");
	for (unsigned i = 0; i < doc->unused_suppressions_count && i < out->top; i++)
		gm_printf(out->file, "unused suppression: leak:%s\n", doc->unused_suppressions[i]);
	gm_print_more(out, "", doc->unused_suppressions_count, "unused suppression");
	gm_text_stored_holders(out, doc);
}

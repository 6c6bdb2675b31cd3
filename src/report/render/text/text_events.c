/*
 * `oom`: what failed and who held the memory.
 */
#include "report/render/text/text_events.h"
#include "report/render/text/text_holders.h"
#include "report/doc/enum_names.h"
#include "report/doc/range_title.h"
#include "report/render/text/text.h"
#include "report/render/text/text_stack.h"
#include "report/stacks/labels.h"
#include "report/support/format.h"
#include "report/support/print.h"
#include <string.h>

#define TOP_HOLDERS  8
#define WORTH_SAYING (16ull << 20) /* slabs are at least 2 MiB and mostly idle */

static void print_figure(struct gm_out *out, const char *what, uint64_t bytes)
{
	char size[GM_FORMAT_BYTES];

	if (bytes != GM_NO_BYTES)
		gm_printf(out->file, "  %-24s %12s\n", what, gm_format_size(size, bytes));
}

static void print_holders(struct gm_out *out, struct gm_doc *doc, const struct gm_oom *oom)
{
	unsigned most = out->top < TOP_HOLDERS ? out->top : TOP_HOLDERS;
	char size[GM_FORMAT_BYTES];

	if (oom->top_count)
		gm_print(out, GM_BOLD, "\n  Who held the memory\n");
	for (unsigned i = 0; i < oom->top_count && i < most; i++) {
		const struct gm_site *site = &doc->sites[oom->top[i].site];

		gm_print(out, GM_BOLD, "  %12s", gm_format_size(size, oom->top[i].bytes));
		gm_printf(out->file, "  in %llu allocation%s, %s\n",
			(unsigned long long)oom->top[i].count, oom->top[i].count == 1 ? "" : "s",
			site->record.level == GM_LEVEL_DRIVER ? gm_kind_name(site->record.kind)
							      : gm_level_title(site->record.level));
		gm_print_stack(out, site->stack, 16);
	}
}

/* "activations 17.5 GiB (71.2 %)", of what was held at that moment. */
static void print_categories(struct gm_out *out, const struct gm_oom *oom)
{
	char size[GM_FORMAT_BYTES], percent[GM_FORMAT_BYTES];
	uint64_t sum = 0;

	for (unsigned i = 0; i < oom->categories_count; i++)
		sum += oom->categories[i].bytes;
	if (oom->categories_count < 2)
		return;
	gm_print(out, GM_BOLD, "\n  What it was for\n");
	for (unsigned i = 0; i < oom->categories_count; i++)
		gm_printf(out->file, "  %12s  %6s  %s\n",
			gm_format_size(size, oom->categories[i].bytes),
			gm_format_percent(percent, oom->categories[i].bytes, sum),
			oom->categories[i].what);
}

static void print_changes(struct gm_out *out, struct gm_doc *doc, const struct gm_oom *oom)
{
	char size[GM_FORMAT_BYTES];

	if (oom->changes_count)
		gm_print(out, GM_BOLD, "\n  More than at the mark \"%s\"\n", oom->mark);
	for (unsigned i = 0; i < oom->changes_count; i++)
		gm_printf(out->file, "  %12s  %s\n", gm_format_size(size, oom->changes[i].bytes),
			gm_stack_label(doc, doc->sites[oom->changes[i].site].stack));
}

/* The pools' and PyTorch's figures stand for themselves. */
static void print_slabs(struct gm_out *out, const struct gm_oom *oom)
{
	for (unsigned i = 0; i < oom->holes_count; i++) {
		const struct gm_fragmentation *row = &oom->holes[i];

		if (strcmp(row->level, "slab") != 0 || gm_unused_bytes(row) < WORTH_SAYING)
			continue;
		print_figure(out, "slabs reserved", row->reserved_bytes);
		print_figure(out, "slabs used", row->used_bytes);
	}
}

/* The ranges that the thread was in: "step 7 / forward". */
static void print_ranges(struct gm_out *out, struct gm_doc *doc, const struct gm_oom *oom)
{
	const char *path = oom->ranges_count ? oom->ranges[0] : NULL;

	for (unsigned i = 1; i < oom->ranges_count; i++)
		path = gm_doc_printf(doc, "%s / %s", path, oom->ranges[i]);
	if (!path)
		return;
	gm_printf(out->file, "  %-24s ", "in the range");
	gm_wrap(out, 27, gm_range_title(doc, path));
}

static void print_oom(struct gm_out *out, struct gm_doc *doc, const struct gm_oom *oom)
{
	const struct gm_oom_record *record = &oom->record;
	char size[GM_FORMAT_BYTES], time[GM_FORMAT_BYTES], device[24];

	gm_heading(out, "%s: %s asked for %s on %s at %s", oom->verdict,
		   oom->api ? oom->api : "the framework",
		   gm_format_size(size, record->requested_bytes),
		   gm_device_name(device, record->device),
		   gm_format_time(time, (double)record->time_ns / 1e9));
	gm_print_stack(out, oom->stack, 2);
	fputc('\n', out->file);
	print_figure(out, "free (driver)", record->free_bytes);
	print_figure(out, "total", record->total_bytes);
	print_figure(out, "tracked", record->tracked_bytes);
	print_figure(out, "PyTorch allocated", record->torch_allocated_bytes);
	print_figure(out, "PyTorch reserved", record->torch_reserved_bytes);
	print_figure(out, "largest hole", record->torch_largest_hole_bytes);
	if (record->pool_reserved_bytes && record->pool_reserved_bytes != GM_NO_BYTES) {
		print_figure(out, "pools reserved", record->pool_reserved_bytes);
		print_figure(out, "pools used", record->pool_used_bytes);
		print_figure(out, "frees pending", record->pending_free_bytes);
	}
	print_slabs(out, oom);
	print_figure(out, "other processes", record->others_bytes);
	if (strcmp(oom->phase, "other") != 0)
		gm_printf(out->file, "  %-24s %12s\n", "phase", oom->phase);
	if (oom->library)
		gm_printf(out->file, "  %-24s %s\n", "asked by", oom->library);
	print_ranges(out, doc, oom);
	print_categories(out, oom);
	print_holders(out, doc, oom);
	print_changes(out, doc, oom);
	gm_print(out, GM_BOLD, "\n  What to do\n");
	for (unsigned i = 0; i < oom->advice_count; i++) {
		gm_printf(out->file, "  - ");
		gm_wrap(out, 4, oom->advice[i]);
	}
}

void gm_text_ooms(struct gm_out *out, struct gm_doc *doc)
{
	unsigned long long lost = doc->ooms_lost, seen = doc->ooms_count + lost;
	char time[GM_FORMAT_BYTES], size[GM_FORMAT_BYTES];

	if (seen)
		gm_print(out, GM_BOLD, "%llu out-of-memory event%s\n", seen, gm_s(seen));
	else
		gm_print(out, GM_BOLD, "No out-of-memory event\n");
	if (lost)
		gm_printf(out->file,
			"the first %u and the latest are described, %llu between them only "
			"counted\n",
			GM_OOMS_FIRST, lost);
	for (unsigned i = 0; i < doc->retries_count; i++) {
		const struct gm_retry_record *retry = &doc->retries[i];

		if (!retry->attempts)
			continue;
		gm_wrapf(out, 2,
			 "device %d: %llu retried, %llu recovered, %llu failed for good, %s lost, "
			 "%s given back meanwhile",
			 retry->device, (unsigned long long)retry->attempts,
			 (unsigned long long)retry->recovered, (unsigned long long)retry->exhausted,
			 gm_format_time(time, (double)retry->stall_ns / 1e9),
			 gm_format_size(size, retry->flushed_bytes));
	}
	for (unsigned i = 0; i < doc->ooms_count && i < out->top; i++)
		print_oom(out, doc, &doc->ooms[i]);
	if (doc->ooms_count > out->top)
		gm_printf(out->file, "\n%u more (--top)\n", doc->ooms_count - out->top);
	if (doc->ooms_count)
		gm_text_stored_holders(out, doc);
}

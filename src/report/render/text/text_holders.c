/*
 * Chains of references, the one that keeps most memory first. See text_holders.h.
 */
#include "report/render/text/text_holders.h"

#include "report/stacks/labels.h"
#include "report/support/format.h"

#include <string.h>
#include "report/support/print.h"

static void print_holder(struct gm_out *out, struct gm_doc *doc, const struct gm_holder *holder)
{
	char size[GM_FORMAT_BYTES], count[GM_FORMAT_BYTES];
	const char *text = "";

	gm_print(out, GM_BOLD, "\n  %10s", gm_format_size(size, holder->bytes));
	gm_printf(out->file, "  %s block%s of %s%s\n", gm_format_count(count, holder->blocks),
		  gm_s(holder->blocks), gm_stack_label(doc, doc->sites[holder->site].stack),
		  holder->garbage ? ", garbage" : "");
	for (unsigned i = 0; i < holder->chain_count; i++)
		text = gm_doc_printf(doc, "%s%s%s", text, i ? " \u2192 " : "", holder->chain[i]);
	if (holder->chain_count) {
		gm_printf(out->file, "      ");
		gm_wrap(out, 8, text);
	}
	if (!holder->complete) {
		gm_printf(out->file, "      ");
		gm_wrap(out, 8,
			gm_doc_printf(doc, "%s%s", holder->chain_count ? "not complete: " : "",
				      holder->note));
	}
}

void gm_text_holders(struct gm_out *out, struct gm_doc *doc)
{
	uint64_t garbage_bytes = 0, garbage_blocks = 0;
	char size[GM_FORMAT_BYTES], count[GM_FORMAT_BYTES];

	gm_heading(out, "What keeps memory alive");
	if (doc->holders_when && doc->holders_ns != GM_NO_BYTES)
		gm_printf(out->file, "  found by GPUMEMTRACE_HOLDERS=%s at %s\n", doc->holders_when,
			  gm_format_time(count, gm_seconds(doc->holders_ns)));
	if (doc->holders_when && doc->holders_python)
		gm_printf(out->file, "  CPython %s, %s objects%s\n", doc->holders_python,
			  gm_format_count(count, doc->holders_objects),
			  doc->holders_whole ? "" : "; not all of them could be looked at");
	for (unsigned i = 0; i < doc->holders_count; i++) {
		if (i < out->top)
			print_holder(out, doc, &doc->holders[i]);
		garbage_bytes += doc->holders[i].garbage ? doc->holders[i].bytes : 0;
		garbage_blocks += doc->holders[i].garbage ? doc->holders[i].blocks : 0;
	}
	if (doc->holders_count > out->top)
		gm_printf(out->file, "\n  %u more (--top)\n", doc->holders_count - out->top);
	if (!doc->holders_count)
		gm_printf(out->file, "  No memory with an address is live.\n");
	if (garbage_blocks)
		gm_printf(out->file, "\n  gc.collect() would free %s in %s block%s.\n",
			  gm_format_size(size, garbage_bytes),
			  gm_format_count(count, garbage_blocks), gm_s(garbage_blocks));
}

void gm_text_stored_holders(struct gm_out *out, struct gm_doc *doc)
{
	bool leaks = doc->ooms_count > 0;

	if (doc->holders_when) {
		gm_text_holders(out, doc);
		return;
	}
	for (unsigned i = 0; i < doc->sites_count; i++)
		leaks |= doc->sites[i].verdict == GM_GROW && !doc->sites[i].hidden;
	if (!doc->python || !leaks)
		return;
	gm_printf(out->file, "\n");
	gm_wrap(out, 2,
		strcmp(doc->end, "running") == 0
			? gm_doc_printf(doc, "What keeps it alive: gpumem-report holders %u",
					doc->header->pid)
			: "What keeps it alive is seen while the program runs (gpumem-report "
			  "holders "
			  "PID), or with GPUMEMTRACE_HOLDERS=oom, mark, signal or grow:1GiB.");
}

/*
 * NCCL's share, from stacks through libnccl.so (nccl.h).
 */
#include "report/stacks/nccl.h"
#include "report/doc/frames.h"
#include "report/stacks/labels.h"
#include "account/kinds.h"
#include <limits.h>
#include <string.h>

static bool is_nccl(const struct gm_frame *frame)
{
	const char *name = frame->python ? NULL : gm_module_name(frame);

	return name && strncmp(name, "libnccl", 7) == 0 && strstr(name, ".so");
}

#define NOWHERE UINT_MAX

/*
 * Returns the index of NCCL's innermost frame in the stack, with nothing but plumbing (CUDA) below
 * it.
 */
static unsigned innermost(const struct gm_stack *stack)
{
	for (unsigned i = 0; stack && i < stack->count; i++) {
		if (is_nccl(gm_stack_frame(stack, i)))
			return i;
		if (!gm_stack_frame(stack, i)->plumbing)
			return NOWHERE;
	}
	return NOWHERE;
}

bool gm_nccl_owns(const struct gm_site *site)
{
	return site->record.level == GM_LEVEL_DRIVER && gm_kind_owned(site->record.kind) &&
	       innermost(site->stack) != NOWHERE;
}

const char *gm_nccl_call(struct gm_doc *doc, const struct gm_site *site)
{
	const struct gm_stack *stack = site->stack;
	unsigned at = innermost(stack);
	const struct gm_frame *entry, *caller;
	struct gm_stack above;
	const char *function = "a call";

	if (at == NOWHERE)
		return "a call that is not known";
	while (at + 1 < stack->count && is_nccl(gm_stack_frame(stack, at + 1)))
		at++;
	entry = gm_stack_frame(stack, at);
	above = *stack;
	above.frames += at + 1;
	above.count -= at + 1;
	if (entry->function && strncmp(entry->function, "nccl", 4) == 0)
		function = entry->function;
	caller = gm_stack_label_frame(&above);
	if (!caller || caller->plumbing)
		return "its own threads";
	return gm_zone_printf(&doc->zone, "%s at %s", function, gm_format_frame_short(caller));
}

uint64_t gm_nccl_bytes(const struct gm_doc *doc, int device, bool at_peak)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < doc->sites_count; i++) {
		const struct gm_site *site = &doc->sites[i];

		if (site->record.device < 0 || (device >= 0 && site->record.device != device) ||
		    !gm_nccl_owns(site))
			continue;
		bytes += at_peak ? site->record.bytes_at_peak : site->record.live_bytes;
	}
	return bytes;
}

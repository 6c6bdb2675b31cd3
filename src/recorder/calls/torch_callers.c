/*
 * Recognises the calls that PyTorch's caching allocator makes (torch_callers.h).
 */
#include "recorder/calls/torch_callers.h"
#include "recorder/torch/pluggable.h"
#include "recorder/calls/trace_tracker.h"
#include "recorder/state/settings.h"
#include "stack/elf_symbols.h"
#include "track/retries.h"

#include <stdlib.h>
#include <string.h>

uint64_t gm_torch_callers[GM_TORCH_CALLERS];

static bool in_libc10_cuda(uintptr_t pc, struct gm_object *object)
{
	const char *name;

	if (!gm_object_at(pc, object))
		return false;
	name = gm_object_basename(object);
	return !strncmp(name, "libc10_cuda", 11) && (name[11] == '.' || name[11] == '-');
}

/* PyTorch's settings are one text of the form "name:value,name:value". */
static void read_settings(void)
{
	const char *settings = getenv("PYTORCH_CUDA_ALLOC_CONF"), *found;

	if (!settings)
		settings = getenv("PYTORCH_ALLOC_CONF");
	found = settings ? strstr(settings, "max_split_size_mb:") : NULL;
	if (found)
		gm_track_torch_max_split(strtoull(found + strlen("max_split_size_mb:"), NULL, 10)
					 << 20);
}

bool gm_torch_call_slow(uintptr_t pc)
{
	uint64_t word = gm_torch_word(pc);
	struct gm_object c10;

	if (gm_settings.torch) {
		gm_pluggable_find();
		/*
		 * Without its cache PyTorch divides no allocation: every tensor has one of its own.
		 */
		if (in_libc10_cuda(pc, &c10) && !getenv("PYTORCH_NO_CUDA_MEMORY_CACHING")) {
			word |= 1;
			read_settings();
			gm_trace_tracker_attach(&c10);
		}
	}
	__atomic_store_n(gm_torch_slot(pc), word, __ATOMIC_RELAXED);
	return word & 1;
}

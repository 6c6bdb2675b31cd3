/*
 * Live allocations and books from a checkpoint of the history. See internal.h.
 */
#include "report/history/internal.h"
#include "account/site_windows.h"

/*
 * Returns the window that is open at the checkpoint as the books have it: the process may have
 * merged windows since, so it is made of all that began after its beginning.
 */
static struct gm_window open_window(const struct gm_site_record *site,
				    const struct gm_header *windows, uint64_t from_ns)
{
	struct gm_window open = site->windows[windows->window_current];

	for (uint32_t i = windows->window_current;
	     i-- > 0 && windows->window_start_ns[i] >= from_ns;)
		gm_merge_windows(&open, &site->windows[i], &open);
	return open;
}

static void restore_site(struct gm_books *books, uint32_t number, struct gm_site_record site)
{
	if (number >= books->sites_count)
		return;
	gm_site_complete_windows(&site, &books->windows);
	site.windows[0] = open_window(&site, &books->windows, books->window_from_ns);
	site.window_current = site.window_merges = 0;
	site.window_resets = 1; /* as open_window of books.c leaves it */
	books->sites[number] = site;
}

static void restore_level(struct gm_books *books, const struct gm_level_record *level)
{
	unsigned slot = gm_slot(level->device);

	books->levels[slot][level->level] = *level;
	books->levels_used[slot][level->level] = true;
	books->torch_seen |= level->level == GM_LEVEL_TORCH;
}

void gm_checkpoint_apply(const struct gm_doc *doc, const struct gm_checkpoint_record *record,
			 struct gm_replay *replay, struct gm_books *books)
{
	switch (record->part) {
	case GM_PART_BEGIN:
		gm_replay_begin(replay, gm_reader_count(doc->reader, GM_TABLE_ALLOCS));
		break;
	case GM_PART_ALLOC:
		gm_replay_restore(replay, record->index, &record->of.alloc);
		break;
	case GM_PART_LEVEL:
		restore_level(books, &record->of.level);
		break;
	case GM_PART_USAGE:
		books->usage[gm_slot(record->of.usage.device)][record->of.usage.kind] =
			record->of.usage;
		break;
	case GM_PART_TORCH:
		books->torch[gm_slot(record->of.torch.device)] = record->of.torch;
		break;
	case GM_PART_VMM:
		books->vmm[gm_slot(record->of.vmm.device)] = record->of.vmm;
		break;
	case GM_PART_WINDOWS:
		books->windows = record->of.windows;
		books->serial = record->of.windows.serial;
		break;
	case GM_PART_SITE:
		restore_site(books, record->index, record->of.site);
		break;
	case GM_PART_END:
		gm_replay_end(replay, record->index);
		break;
	case GM_PARTS:
		break;
	}
}

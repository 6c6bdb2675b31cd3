/*
 * Any bytes as a complete history: played to its end, with the events that come of it. The file
 * that it belongs to is made to fit, so that more than its identity is looked at.
 */
#include "harness.h"
#include "report/journal/journal_file.h"
#include "report/journal/replay.h"

#include <string.h>

static void apply_part(struct gm_replay *replay, const struct gm_checkpoint_record *record)
{
	if (record->part == GM_PART_BEGIN)
		gm_replay_begin(replay, 65536);
	else if (record->part == GM_PART_ALLOC)
		gm_replay_restore(replay, record->index, &record->of.alloc);
	else if (record->part == GM_PART_END)
		gm_replay_end(replay, record->index);
}

static void play(struct gm_journal_file *journal)
{
	static struct gm_journal_entry entry;
	struct gm_replay replay = {0};
	struct gm_event_record event;

	while (gm_journal_next(journal, &entry)) {
		struct gm_replay_step step = gm_replay_apply(&replay, &entry);

		if (entry.what == GM_JOURNAL_PART)
			apply_part(&replay, &entry.record);
		else if (gm_replay_event(&replay, &entry, &step, &event) &&
			 (event.op >= GM_OPS || event.kind >= GM_KINDS || event.level >= GM_LEVELS))
			abort();
	}
	if (replay.count > replay.additions + 4096 + 1)
		abort();
	gm_replay_free(&replay);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct gm_journal_header header = {0};
	struct gm_header owner = {.features = GM_FEATURE_JOURNAL};
	struct gm_journal_file *journal;
	char path[64], why[256];
	int fd;

	memcpy(&header, data, bytes < sizeof(header) ? bytes : sizeof(header));
	owner.pid = header.pid;
	owner.pid_start_ticks = header.pid_start_ticks;
	owner.started_realtime_ns = header.started_realtime_ns;
	owner.started_monotonic_ns = header.started_monotonic_ns;
	harness_file(data, bytes, &fd, path);
	header.checkpoints = 1; /* in chunk 0, where the input has one or has not */
	if (bytes >= sizeof(header) && pwrite(fd, &header, sizeof(header), 0) < 0)
		abort();
	journal = gm_journal_from(fd, &owner, "made", why, sizeof(why)); /* closes it */
	if (journal)
		play(journal);
	if (journal) {
		gm_journal_resume(journal, UINT64_MAX);
		play(journal);
		gm_journal_rewind(journal);
	}
	gm_journal_close(journal);
	return 0;
}

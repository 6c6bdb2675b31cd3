/*
 * Marks made before the file was opened (early_marks.h).
 */
#include "recorder/process/early_marks.h"
#include "recorder/state/fork_page.h"
#include "track/marks.h"

#include <stdio.h>
#include <string.h>

/* Only the latest are kept: nothing was allocated between those that are dropped. */
#define MOST_MARKS 16
#define NAME_BYTES 256

static struct {
	unsigned count; /* guarded, as the marks are, by the fork page's lock `early` */
	struct {
		char name[NAME_BYTES];
		enum gm_mark_source source;
	} marks[MOST_MARKS];
} early;

void gm_early_mark(const char *name, enum gm_mark_source source)
{
	struct gm_lock *lock = &gm_fork_page()->early;

	gm_lock_acquire(lock);
	if (early.count == MOST_MARKS)
		memmove(early.marks, early.marks + 1, --early.count * sizeof(*early.marks));
	snprintf(early.marks[early.count].name, NAME_BYTES, "%s", name ? name : "");
	early.marks[early.count++].source = source;
	gm_lock_release(lock);
}

void gm_early_marks_record(void)
{
	struct gm_lock *lock = &gm_fork_page()->early;
	unsigned i;

	gm_lock_acquire(lock);
	for (i = 0; i < early.count; i++)
		gm_track_mark(early.marks[i].name, early.marks[i].source);
	early.count = 0;
	gm_lock_release(lock);
}

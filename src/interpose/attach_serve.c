/*
 * The function that gpumem-report attach calls in a process that was started without the shim
 * (store/attach_point.h). The calling thread was stopped anywhere in the program, but for the
 * loader, malloc and the shim: it may hold any lock of the program's, of libcuda's or of PyTorch's
 * allocator. So nothing here calls CUDA, opens a library or allocates. The recording itself begins
 * in the next call that the program makes (recorder/calls/sleep.h).
 */
#include "interpose/slots.h"
#include "recorder/process/attached.h"
#include "recorder/process/start.h"
#include "recorder/state/libraries.h"
#include "store/attach_point.h"
#include "store/syscall_guard.h"

#include <errno.h>
#include <stdio.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT extern struct gm_attach_point gpumemtrace_attach_point;
struct gm_attach_point gpumemtrace_attach_point = {.magic = GM_ATTACH_MAGIC,
						   .version = GM_ATTACH_VERSION};

EXPORT void gpumemtrace_attach_serve(void);

static void count(const struct gm_slot_counts *counts)
{
	gpumemtrace_attach_point.slots = counts->slots;
	gpumemtrace_attach_point.table_words = counts->table_words;
	gpumemtrace_attach_point.failed = counts->failed;
	gpumemtrace_attach_point.lost = counts->lost;
	gm_attached_counts(counts->slots, counts->table_words);
}

static void refuse(const char *why)
{
	gpumemtrace_attach_point.refused = 1;
	snprintf(gpumemtrace_attach_point.text, sizeof(gpumemtrace_attach_point.text), "%s", why);
}

static void attach(void)
{
	struct gm_slot_counts counts;
	const char *why =
		gm_attached_begin(gpumemtrace_attach_point.text, gpumemtrace_attach_point.age_ns);

	if (why) {
		refuse(why);
		return;
	}
	gm_slots_redirect(1, &counts);
	count(&counts);
	if (counts.slots + counts.table_words) {
		gpumemtrace_attach_point.state = GM_ATTACH_ATTACHED;
		return;
	}
	gm_slots_restore(&counts);
	gm_attached_end();
	refuse("no loaded object calls CUDA by a name or a table that can be led to the shim: CUDA "
	       "is "
	       "linked privately, or not loaded yet");
}

static void detach(void)
{
	struct gm_slot_counts counts;

	gm_slots_restore(&counts);
	count(&counts);
	gm_attached_end();
	gpumemtrace_attach_point.state = GM_ATTACH_DETACHED;
}

void gpumemtrace_attach_serve(void)
{
	struct gm_attach_point *point = &gpumemtrace_attach_point;
	int error = errno;

	point->refused = 0;
	if (point->asked == GM_ATTACH_ATTACH && point->state != GM_ATTACH_ATTACHED)
		attach();
	else if (point->asked == GM_ATTACH_DETACH && point->state == GM_ATTACH_ATTACHED)
		detach();
	else
		refuse("it is in that state already");
	point->asked = GM_ATTACH_NOTHING;
	__atomic_fetch_add(&point->served, 1, __ATOMIC_RELEASE);
	errno = error;
}

/*
 * Runs before or after the recorder's constructor, in the same thread. The tool may have another
 * thread call gpumemtrace_attach_serve as soon as `loaded` is set, so that constructor has to be
 * over by then: it sets whether the process is recorded, as attach() does.
 */
static void __attribute__((constructor)) loaded(void)
{
	gm_find_disabled(); /* the recorder's constructor runs now, unless it has run */
	gpumemtrace_attach_point.late = gm_loaded_late();
	__atomic_store_n(&gpumemtrace_attach_point.loaded, 1, __ATOMIC_RELEASE);
}

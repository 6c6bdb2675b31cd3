/*
 * The function that gpumem-report attach calls in a process that was started without the shim
 * (store/attach_point.h). The calling thread was stopped anywhere in the program, but for the
 * loader, malloc and the shim: it may hold any lock of the program's, of libcuda's or of PyTorch's
 * allocator. So nothing here calls CUDA, opens a library or allocates, but for joining and leaving
 * CUPTI, for which the tool chooses a thread that is outside of CUDA too. The recording itself
 * begins in the next call that the program makes (recorder/calls/sleep.h).
 */
#include "interpose/slots.h"
#include "cupti/backend.h"
#include "cupti/driver_calls.h"
#include "interpose/internal.h"
#include "recorder/process/attached.h"
#include "recorder/process/start.h"
#include "recorder/state/libraries.h"
#include "recorder/state/settings.h"
#include "store/attach_point.h"
#include "store/syscall_guard.h"

#include <errno.h>
#include <stdio.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT extern struct gm_attach_point gpumemtrace_attach_point;
struct gm_attach_point gpumemtrace_attach_point = {.magic = GM_ATTACH_MAGIC,
						   .version = GM_ATTACH_VERSION};

EXPORT void gpumemtrace_attach_serve(void);

static struct gm_attach_point *const point = &gpumemtrace_attach_point;

static void count(const struct gm_slot_counts *counts)
{
	point->slots = counts->slots;
	point->table_words = counts->table_words;
	point->failed = counts->failed;
	point->lost = counts->lost;
}

static void refuse(const char *why)
{
	point->refused = 1;
	snprintf(point->text, sizeof(point->text), "%s", why);
}

static void attach(void)
{
	struct gm_slot_counts counts;
	const char *why = gm_attached_begin(point->text, point->age_ns);

	if (why) {
		refuse(why);
		return;
	}
	gm_slots_redirect(1, &counts);
	count(&counts);
	if (!counts.slots && !counts.table_words && !point->cupti) {
		gm_slots_restore(&counts);
		gm_attached_end();
		refuse("no loaded object calls CUDA by a name or a table that can be led to the "
		       "shim: CUDA is linked privately, or not loaded yet");
		return;
	}
	gm_attached_routes(counts.slots, counts.table_words, point->cupti, point->why);
	point->state = GM_ATTACH_ATTACHED;
	gm_cupti_listen(point->cupti != 0);
}

static void detach(void)
{
	struct gm_slot_counts counts;

	gm_slots_restore(&counts);
	count(&counts);
	gm_attached_end();
	point->state = GM_ATTACH_DETACHED;
}

/* The libraries that the recorder needs are opened now, and not within one of CUPTI's callbacks. */
static void join(void)
{
	if (!gm_find_driver())
		snprintf(point->why, sizeof(point->why), "libcuda is not loaded");
	else if (!gm_attached_prepare(point->text))
		snprintf(point->why, sizeof(point->why), "the shim is switched off");
	else if (gm_settings.refuses)
		snprintf(point->why, sizeof(point->why),
			 "GPUMEMTRACE_CAPACITY and GPUMEMTRACE_FAIL refuse calls, which a callback "
			 "cannot");
	else
		point->cupti = gm_cupti_join(point->why, sizeof(point->why));
}

static void leave(void)
{
	if (gm_cupti_leave())
		point->cupti = 0;
	else
		refuse("a CUDA call that is being recorded does not end, and CUPTI cannot be left "
		       "meanwhile");
}

void gpumemtrace_attach_serve(void)
{
	int error = errno;

	point->refused = 0;
	if (point->asked == GM_ATTACH_ATTACH && point->state != GM_ATTACH_ATTACHED)
		attach();
	else if (point->asked == GM_ATTACH_DETACH && point->state == GM_ATTACH_ATTACHED)
		detach();
	else if (point->asked == GM_ATTACH_JOIN && point->state != GM_ATTACH_ATTACHED)
		join();
	else if (point->asked == GM_ATTACH_LEAVE)
		leave();
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

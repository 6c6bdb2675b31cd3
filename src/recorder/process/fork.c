/*
 * The handlers of fork() (fork.h). A raw clone does without them: its child is recognised by the
 * wipe-on-fork page alone, and nothing here touches the parent's file before that page was looked
 * at.
 */
#include "recorder/process/fork.h"
#include "recorder/state/fork_page.h"
#include "recorder/state/in_flight.h"
#include "stack/elf_symbols.h"
#include "store/writer.h"
#include "store/thread_state.h"

#include <string.h>
#include <unistd.h>

static bool had_file; /* the forking process has one of its own */

extern int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void),
			     void *dso);

static void before_fork(void)
{
	const struct gm_fork_page *page = gm_fork_page();

	had_file = page->mine && page->pid == getpid();
	gm_objects_pause();
}

static void in_parent(void)
{
	gm_objects_go_on();
}

/* The parent's file is not mapped in the child (MADV_DONTFORK): private memory takes its place. */
static void in_child(void)
{
	if (!gm_fork_pages.wiped)
		memset(gm_fork_page(), 0, sizeof(struct gm_fork_page));
	if (had_file)
		gm_store_in_child();
	gm_thread.id = 0;
	gm_in_flight_forget();
	gm_objects_in_child();
}

void gm_fork_init(void)
{
	gm_objects_init(&gm_fork_page()->lockable);
	__register_atfork(before_fork, in_parent, in_child, NULL);
}

/*
 * The page that a fork wipes (own_page.h), and what else the child of a fork() needs at once: memory in
 * place of the parent's file, which is not mapped there (MADV_DONTFORK).
 */
#include "interpose/own_page.h"
#include "interpose/changes.h"
#include "stack/elf_symbols.h"
#include "store/writer.h"
#include "track/event.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE_BYTES 4096

static struct gm_own_page fallback;
static bool had_file; /* the process that forks */

GM_HOT __attribute__((aligned(64))) struct gm_own gm_own = {.page = &fallback};

extern int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void), void *dso);

static void before_fork(void)
{
	const struct gm_own_page *page = gm_own_page();

	had_file = page->mine && page->pid == getpid();
	gm_objects_pause();
}

static void after_fork(void)
{
	gm_objects_go_on();
}

/* Runs in the child before any code of the program's does. A raw clone does without: it is told by the
 * page alone, and nothing of ours touches the parent's file before it was looked at. */
static void in_child(void)
{
	if (!gm_own.wiped)
		memset(gm_own_page(), 0, sizeof(struct gm_own_page));
	if (had_file)
		gm_store_in_child();
	gm_thread_id = 0;
	gm_changes_forget();
	gm_objects_in_child();
}

void gm_own_page_init(void)
{
	void *page;

	if (gm_own.page != &fallback)
		return;
	page = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page != MAP_FAILED) {
		gm_own.wiped = madvise(page, PAGE_BYTES, MADV_WIPEONFORK) == 0;
		__atomic_store_n(&gm_own.page, page, __ATOMIC_RELEASE);
	}
	__register_atfork(before_fork, after_fork, in_child, NULL);
}

/*
 * This file maps the wipe-on-fork page (fork_page.h).
 */
#include "recorder/state/fork_page.h"

#include <sys/mman.h>

#define PAGE_BYTES 4096

static struct gm_fork_page fallback;

/* The first variable of this section that is linked: the others follow it in its cache line. */
GM_HOT_HOOK __attribute__((aligned(64))) struct gm_fork_pages gm_fork_pages = {.page = &fallback};

void gm_fork_page_init(void)
{
	void *page;

	if (gm_fork_pages.page != &fallback)
		return;
	page = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		return;
	gm_fork_pages.wiped = madvise(page, PAGE_BYTES, MADV_WIPEONFORK) == 0;
	__atomic_store_n(&gm_fork_pages.page, page, __ATOMIC_RELEASE);
}

/*
 * Separate debug files and debuginfod, see debug_files.h. libdebuginfod is opened when it is first
 * wanted, so that the tool runs without it.
 */
#include "report/symbols/debug_files.h"
#include <dlfcn.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define DEBUG_DIRECTORY "/usr/lib/debug"

struct client;

/* libdebuginfod's functions, by elfutils/debuginfod.h. */
static struct {
	bool looked;
	struct client *client;
	int (*find_debuginfo)(struct client *client, const unsigned char *id, int bytes,
			      char **path);
	int (*find_executable)(struct client *client, const unsigned char *id, int bytes,
			       char **path);
} debuginfod;

static void look_for_debuginfod(void)
{
	const char *urls = getenv("DEBUGINFOD_URLS");
	struct client *(*begin)(void);
	void *library;

	if (debuginfod.looked)
		return;
	debuginfod.looked = true;
	if (!urls || !*urls)
		return;
	library = dlopen("libdebuginfod.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!library)
		return;
	begin = (struct client * (*)(void)) dlsym(library, "debuginfod_begin");
	*(void **)&debuginfod.find_debuginfo = dlsym(library, "debuginfod_find_debuginfo");
	*(void **)&debuginfod.find_executable = dlsym(library, "debuginfod_find_executable");
	if (begin && debuginfod.find_debuginfo && debuginfod.find_executable)
		debuginfod.client = begin();
}

/* Debug information has the names of all functions, the executable itself those it exports. */
static int ask_servers(struct gm_zone *zone, const unsigned char *build_id, unsigned bytes,
		       const char **path)
{
	char *found = NULL;
	int fd;

	look_for_debuginfod();
	if (!debuginfod.client)
		return -1;
	fd = debuginfod.find_debuginfo(debuginfod.client, build_id, (int)bytes, &found);
	if (fd < 0)
		fd = debuginfod.find_executable(debuginfod.client, build_id, (int)bytes, &found);
	if (fd >= 0)
		*path = gm_zone_strdup(zone, found ? found : "debuginfod");
	free(found);
	return fd < 0 ? -1 : fd;
}

int gm_debug_file_open(struct gm_zone *zone, const unsigned char *build_id, unsigned bytes,
		       const char **path)
{
	char hex[2 * 64 + 1];
	int fd;

	if (bytes < 2 || bytes > 64)
		return -1;
	for (unsigned i = 0; i < bytes; i++)
		snprintf(hex + 2 * i, 3, "%02x", build_id[i]);
	*path = gm_zone_printf(zone, DEBUG_DIRECTORY "/.build-id/%.2s/%s.debug", hex, hex + 2);
	fd = open(*path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	return fd >= 0 ? fd : ask_servers(zone, build_id, bytes, path);
}

/*
 * Opens plugins (arguments: path and expected major, in pairs) RTLD_LOCAL, with PLUGINS_DEEPBIND=1
 * in the environment so that they find their own libraries first, allocates through all of them in
 * turn, frees through each what it allocated but for one block each, and prints what it knows.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#define PLUGINS 4
#define BLOCKS	10

struct plugin {
	int (*allocate)(void **memory, unsigned long bytes);
	int (*release)(void *memory);
	int (*major)(void);
	void *blocks[BLOCKS];
};

static void open_plugin(struct plugin *plugin, const char *path, int major)
{
	int flags = RTLD_NOW | RTLD_LOCAL | (getenv("PLUGINS_DEEPBIND") ? RTLD_DEEPBIND : 0);
	void *library = dlopen(path, flags);

	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		exit(2);
	}
	plugin->allocate = (int (*)(void **, unsigned long))dlsym(library, "plugin_allocate");
	plugin->release = (int (*)(void *))dlsym(library, "plugin_release");
	plugin->major = (int (*)(void))dlsym(library, "plugin_major");
	if (!plugin->allocate || !plugin->release || !plugin->major || plugin->major() != major) {
		fprintf(stderr, "%s does not reach its own cudart\n", path);
		exit(3);
	}
}

int main(int argc, char **argv)
{
	struct plugin plugins[PLUGINS];
	int count = (argc - 1) / 2, p, b;
	unsigned long live = 0, peak = 0, allocations = 0;

	for (p = 0; p < count && p < PLUGINS; p++)
		open_plugin(&plugins[p], argv[1 + 2 * p], atoi(argv[2 + 2 * p]));
	for (b = 0; b < BLOCKS; b++)
		for (p = 0; p < count; p++) {
			if (plugins[p].allocate(&plugins[p].blocks[b], 100000))
				return 4;
			live += 100000;
			allocations++;
		}
	peak = live;
	for (p = 0; p < count; p++)
		for (b = 1; b < BLOCKS; b++) {
			if (plugins[p].release(plugins[p].blocks[b]))
				return 5;
			live -= 100000;
		}
	printf("{\"live\": %lu, \"live_count\": %d, \"peak\": %lu, \"allocations\": %lu}\n", live,
	       count, peak, allocations);
	return 0;
}

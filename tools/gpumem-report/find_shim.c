/*
 * Finds the shim, and the path of its file, for the commands that hand them to a process.
 */
#include "cli.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUILT "../../src/interpose/libgpumemtrace.so"

static bool ends_with(const char *text, const char *end)
{
	size_t length = strlen(text), tail = strlen(end);

	return length >= tail && strcmp(text + length - tail, end) == 0;
}

/*
 * True if a library can be trusted: its code is to run in the user's program. It and its folder
 * belong to the user, to root or to the owner of the tool, and others cannot write to them.
 */
static bool is_trusted(const char *path, const char *tool)
{
	char *folder = strdup(path), *slash = folder ? strrchr(folder, '/') : NULL;
	const char *const parts[] = {path, folder};
	struct stat self, st;
	bool trusted = slash && stat(tool, &self) == 0;

	if (slash)
		slash[slash == folder] = '\0';
	for (size_t i = 0; i < 2 && trusted; i++)
		trusted = stat(parts[i], &st) == 0 && !(st.st_mode & S_IWOTH) &&
			  (st.st_uid == 0 || st.st_uid == geteuid() || st.st_uid == self.st_uid);
	free(folder);
	return trusted;
}

char *gm_cli_find_shim(void)
{
	static const char *const places[] = {
		"../lib/libgpumemtrace.so",
		"../" GM_LIBDIR "/libgpumemtrace.so",
		"libgpumemtrace.so",
		"../libgpumemtrace.so",
		BUILT,
	};
	static char found[PATH_MAX];
	char self[PATH_MAX], *slash, path[2 * PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (length <= 0)
		return NULL;
	self[length] = '\0';
	slash = strrchr(self, '/');
	if (slash)
		*slash = '\0';
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		if (strcmp(places[i], BUILT) == 0 && !ends_with(self, "/tools/gpumem-report"))
			continue; /* only the build tree has that place */
		snprintf(path, sizeof(path), "%s/%s", self, places[i]);
		if (realpath(path, found) && is_trusted(found, "/proc/self/exe"))
			return found;
	}
	return NULL;
}

char *gm_cli_absolute(struct gm_cli *cli, const char *pattern)
{
	char here[PATH_MAX];

	if (pattern[0] == '/' || !getcwd(here, sizeof(here)))
		return gm_zone_strdup(&cli->texts, pattern);
	return gm_zone_printf(&cli->texts, "%s/%s", here, pattern);
}

/*
 * A preload under which this machine is called $FAKE_HOST.
 */
#include <stdlib.h>
#include <string.h>

int gethostname(char *name, size_t bytes);

int gethostname(char *name, size_t bytes)
{
	const char *host = getenv("FAKE_HOST");

	if (!bytes)
		return -1;
	strncpy(name, host ? host : "localhost", bytes - 1);
	name[bytes - 1] = '\0';
	return 0;
}

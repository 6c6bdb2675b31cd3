/*
 * Any lines as the words of a command line, the whole tool run on them: over a real file, file.gmt,
 * in a folder of their own. Words cannot leave that folder (no '/'), nothing is written (fopen and
 * mkostemp are wrapped), no program is started and no screen opened: `run` and `top` are parsed
 * only.
 */
#include "../../tools/gpumem-report/cli.h"
#include "harness.h"

#include <fcntl.h>
#include <string.h>

#define MOST_WORDS 32

int LLVMFuzzerInitialize(int *argc, char ***argv);
FILE *__wrap_fopen(const char *path, const char *mode);
FILE *__real_fopen(const char *path, const char *mode);
int __wrap_mkostemp(char *pattern, int flags);
int gm_main(int argc, char **argv); /* the tool's, renamed by the build */

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	unlink("file.gmt");
	return symlink(FUZZ_FILE, "file.gmt");
}

FILE *__wrap_fopen(const char *path, const char *mode)
{
	return __real_fopen(*mode == 'r' ? path : "/dev/null", mode);
}

int __wrap_mkostemp(char *pattern, int flags)
{
	(void)pattern;
	return open("/dev/null", O_WRONLY | flags);
}

static const struct gm_command_row *command_of(const char *name)
{
	for (unsigned i = 0; i < gm_commands_count; i++)
		if (strcmp(gm_commands[i].name, name) == 0)
			return &gm_commands[i];
	return NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	char text[1024], *rest = text, *argv[MOST_WORDS + 2] = {"gpumem-report"}, *word;
	const struct gm_command_row *command;
	int argc = 1;

	if (bytes >= sizeof(text) || memchr(data, '/', bytes))
		return -1;
	memcpy(text, data, bytes);
	text[bytes] = '\0';
	if (strstr(text, "sqlite")) /* writes by itself */
		return -1;
	while (argc <= MOST_WORDS && (word = strsep(&rest, "\n")))
		argv[argc++] = word;
	command = command_of(argv[1]);
	if (command && command->bit & (GM_RUN | GM_TOP)) {
		struct gm_cli cli = {0};

		gm_cli_parse(&cli, command, argc - 2, argv + 2);
		free(cli.words);
		gm_zone_free(&cli.texts);
		return 0;
	}
	if (gm_main(argc, argv) > GM_EXIT_GATE)
		abort();
	return 0;
}

/*
 * Any bytes as an output file, new.gmt, through each command of the tool, alone and beside a real
 * file, file.gmt: the last byte says which command. Nothing is written (fopen and mkostemp are
 * wrapped).
 */
#include "../../tools/gpumem-report/cli.h"
#include "harness.h"

#include <fcntl.h>
#include <string.h>

#define MOST_WORDS 24

int LLVMFuzzerInitialize(int *argc, char ***argv);
FILE *__wrap_fopen(const char *path, const char *mode);
FILE *__real_fopen(const char *path, const char *mode);
int __wrap_mkostemp(char *pattern, int flags);
int gm_main(int argc, char **argv); /* the tool's, renamed by the build */

static const char *const commands[] = {
	"diff file.gmt new.gmt",
	"diff new.gmt file.gmt",
	"diff --json file.gmt new.gmt",
	"plan --batch 8,16 file.gmt new.gmt",
	"plan --batch 16,8 file.gmt new.gmt",
	"plan --json --batch 1,18446744073709551615 new.gmt file.gmt",
	"plan --batch 3 --gpu H200 new.gmt",
	"html -o page file.gmt new.gmt",
	"html -o page new.gmt",
	"check --leaks grow --baseline file.gmt --max-growth 5 new.gmt",
	"check --leaks exit --baseline new.gmt --max-peak-growth 1MiB --junit out --sarif out "
	"--markdown out --github-annotations out "
	"--gitlab-code-quality out file.gmt",
	"check --per-mark --no-errors --json new.gmt",
	"summary new.gmt",
	"summary --json --top 5 file.gmt new.gmt",
	"leaks --full --all new.gmt",
	"leaks --json new.gmt",
	"sites --sort churn --full new.gmt file.gmt",
	"fragmentation new.gmt",
	"oom --json new.gmt",
	"timeline new.gmt",
	"top --once new.gmt",
	"whatif new.gmt",
	"export --format csv file.gmt new.gmt",
	"export --format collapsed new.gmt",
	"export --format openmetrics new.gmt file.gmt",
	"export --format perfetto new.gmt file.gmt",
	"export --format pprof -o out new.gmt file.gmt",
	"export --format torch-snapshot -o out new.gmt",
	"summary --at 1ms new.gmt",
	"sites --at peak new.gmt",
};

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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	char text[256], *rest = text, *argv[MOST_WORDS + 1] = {"gpumem-report"};
	int argc = 1, fd;

	if (bytes == 0)
		return -1;
	fd = open("new.gmt", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, data, bytes - 1) != (ssize_t)bytes - 1)
		abort();
	close(fd);
	strcpy(text, commands[data[bytes - 1] % (sizeof(commands) / sizeof(commands[0]))]);
	while (argc < MOST_WORDS && (argv[argc] = strsep(&rest, " ")))
		argc++;
	if (gm_main(argc, argv) > GM_EXIT_GATE)
		abort();
	return 0;
}

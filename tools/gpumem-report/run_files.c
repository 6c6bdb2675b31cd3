/*
 * Finding the files of a run, see run_files.h. The shim keeps the token in each file
 * (recorder/state/launcher.c), so that it does not matter how many launchers lie between.
 */
#include "run_files.h"
#include "store/reader.h"
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define VARIABLE "_GPUMEMTRACE_RUN"

const char *gm_run_token_set(struct gm_zone *zone)
{
	const char *outer = getenv(VARIABLE);
	uint64_t number = 0;
	char *token;

	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		return NULL;
	token = gm_zone_printf(zone, "%s%s%016llx", outer ? outer : "", outer ? "." : "",
			       (unsigned long long)number);
	return setenv(VARIABLE, token, 1) == 0 ? token : NULL;
}

/* True if the "NAME=value\n" string has the token, or one of a run within it. */
static bool carries(const char *variables, const char *token)
{
	const char *at = variables ? strstr(variables, VARIABLE "=") : NULL;

	if (!at || (at != variables && at[-1] != '\n'))
		return false;
	at += strlen(VARIABLE "=");
	return strncmp(at, token, strlen(token)) == 0 && strchr(".\n", at[strlen(token)]);
}

/* The pattern as a glob: what the shim fills in may be anything, the rest is meant literally. */
static char *glob_pattern(struct gm_zone *zone, const char *out, const char *tail)
{
	char *text = gm_zone_alloc(zone, 2 * strlen(out) + strlen(tail) + 1, 1), *to = text;

	for (; *out; out++) {
		if (*out == '%' && out[1] && strchr("phrn", out[1])) {
			*to++ = '*';
			out++;
		} else if (*out == '%' && out[1] == '%') {
			*to++ = '%';
			out++;
		} else {
			if (strchr("*?[\\", *out))
				*to++ = '\\';
			*to++ = *out;
		}
	}
	strcpy(to, tail);
	return text;
}

static bool is_listed(const struct gm_cli *cli, const char *path)
{
	for (unsigned i = 0; i < cli->words_count; i++)
		if (strcmp(cli->words[i], path) == 0)
			return true;
	return false;
}

static bool is_of_run(const char *path, const char *token)
{
	char error[512];
	struct gm_reader *reader = gm_reader_open(path, error, sizeof(error));
	bool ours = reader &&
		    carries(gm_reader_string(reader, gm_reader_header(reader)->job_string), token);

	if (reader)
		gm_reader_close(reader);
	return ours;
}

static void add_files(struct gm_cli *cli, const char *pattern, const char *token)
{
	glob_t names;

	if (glob(pattern, 0, NULL, &names) != 0)
		return;
	cli->words = gm_realloc(cli->words, (cli->words_count + names.gl_pathc + 1) *
						    sizeof(*cli->words));
	for (size_t i = 0; i < names.gl_pathc; i++) {
		const char *path = names.gl_pathv[i];

		if (!strstr(path, ".snap") && !strstr(path, GM_HISTORY_SUFFIX) &&
		    !is_listed(cli, path) && is_of_run(path, token))
			cli->words[cli->words_count++] = gm_zone_strdup(&cli->texts, path);
	}
	globfree(&names);
}

void gm_run_find_files(struct gm_cli *cli, const char *out, const char *token)
{
	cli->words_count = 0;
	add_files(cli, glob_pattern(&cli->texts, out, ""), token);
	add_files(cli, glob_pattern(&cli->texts, out, ".*"), token);
}

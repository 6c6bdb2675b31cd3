/*
 * Finding output files in directories, see inputs.h. Calls libc, and the tests for snapshots and
 * archives.
 */
#include "report/open/inputs.h"
#include "report/import/import.h"
#include "report/journal/archive.h"
#include "store/layout.h"
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MOST_DEPTH    8 /* directories below the one that was named */
#define NAMED_FOREIGN 3

struct search {
	struct gm_inputs *inputs;
	unsigned foreign;
	const char *names; /* the first of those */
	unsigned found;
};

static bool ends_with(const char *text, const char *tail)
{
	size_t a = strlen(text), b = strlen(tail);

	return a >= b && strcmp(text + a - b, tail) == 0;
}

/* NAME.gmt, and what the shim makes of a name: NAME.gmt.old2, .snap1, .12345 (a pid). */
static bool is_called_output(const char *name)
{
	const char *tail = strstr(name, ".gmt");

	if (!tail)
		return false;
	tail += 4;
	while (*tail == '.') {
		tail++;
		if (strncmp(tail, "old", 3) == 0)
			tail += 3;
		else if (strncmp(tail, "snap", 4) == 0)
			tail += 4;
		if (!isdigit((unsigned char)*tail))
			return false;
		while (isdigit((unsigned char)*tail))
			tail++;
	}
	return *tail == '\0';
}

static bool begins_as_output(const char *path)
{
	char head[sizeof(GM_POINTER_MAGIC)] = "";
	FILE *file = fopen(path, "re");
	bool ours;

	if (!file)
		return false;
	ours = fread(head, 1, sizeof(head) - 1, file) > 0 &&
	       (memcmp(head, GM_MAGIC, sizeof(GM_MAGIC)) == 0 ||
		memcmp(head, GM_POINTER_MAGIC, sizeof(GM_POINTER_MAGIC) - 1) == 0);
	fclose(file);
	return ours || gm_import_detect(path) || gm_archive_detect(path);
}

static void add(struct gm_inputs *inputs, const char *path)
{
	char **slot = gm_zone_push(&inputs->zone, &inputs->paths, &inputs->count, sizeof(*slot));

	*slot = gm_zone_strdup(&inputs->zone, path);
}

static void look_at(struct search *search, const char *path, const char *name)
{
	if (ends_with(name, ".new") || ends_with(name, ".events") || strstr(name, ".holders"))
		return; /* a file in the making; the history beside a file */
	if (is_called_output(name) || begins_as_output(path)) {
		add(search->inputs, path);
		search->found++;
		return;
	}
	if (search->foreign++ < NAMED_FOREIGN)
		search->names = gm_zone_printf(&search->inputs->zone, "%s%s%s",
					       search->names ? search->names : "",
					       search->names ? ", " : "", name);
}

static int by_number(const struct dirent **a, const struct dirent **b)
{
	return strverscmp((*a)->d_name, (*b)->d_name);
}

/* False if the directory cannot be read. Links to directories are not followed. */
static bool search_directory(struct search *search, const char *path, unsigned depth)
{
	struct dirent **entries;
	int count = scandir(path, &entries, NULL, by_number);

	for (int i = 0; i < count; i++) {
		const char *name = entries[i]->d_name;
		const char *slash = ends_with(path, "/") ? "" : "/";
		char *below = gm_zone_printf(&search->inputs->zone, "%s%s%s", path, slash, name);
		struct stat st;

		if (name[0] != '.' && lstat(below, &st) == 0) {
			if (S_ISDIR(st.st_mode) && depth < MOST_DEPTH)
				search_directory(search, below, depth + 1);
			else if (S_ISREG(st.st_mode) ||
				 (S_ISLNK(st.st_mode) && stat(below, &st) == 0 &&
				  S_ISREG(st.st_mode)))
				look_at(search, below, name);
		}
		free(entries[i]);
	}
	if (count >= 0)
		free(entries);
	return count >= 0;
}

static void tell_foreign(struct search *search, const char *directory,
			 void (*complain)(const char *))
{
	const char *more = search->foreign > NAMED_FOREIGN ? ", ..." : "";

	if (search->foreign)
		complain(gm_zone_printf(&search->inputs->zone, "%s: %u other file%s left out: %s%s",
					directory, search->foreign, search->foreign == 1 ? "" : "s",
					search->names, more));
}

static void open_directory(struct gm_inputs *inputs, const char *path,
			   void (*complain)(const char *))
{
	struct search search = {.inputs = inputs};

	if (!search_directory(&search, path, 0)) {
		complain(gm_zone_printf(&inputs->zone, "%s cannot be read: %s", path,
					strerror(errno)));
		inputs->failed = true;
		return;
	}
	tell_foreign(&search, path, complain);
	if (!search.found) {
		complain(gm_zone_printf(&inputs->zone,
					"%s holds no output file of gpumemtrace; their names end "
					"in .gmt unless GPUMEMTRACE_OUT said otherwise",
					path));
		inputs->failed = true;
	}
}

struct gm_inputs gm_inputs_find(char *const *words, unsigned count,
				void (*complain)(const char *sentence))
{
	struct gm_inputs inputs = {0};
	struct stat st;

	for (unsigned i = 0; i < count; i++)
		if (stat(words[i], &st) == 0 && S_ISDIR(st.st_mode))
			open_directory(&inputs, words[i], complain);
		else
			add(&inputs, words[i]);
	return inputs;
}

void gm_inputs_free(struct gm_inputs *inputs)
{
	gm_zone_free(&inputs->zone);
}

/*
 * top: a live view of a traced process or of a file.
 */
#include "cli.h"
#include "report/find_process.h"
#include "report/render/json.h"
#include "top_screen.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define ONCE_WIDTH 120

static void print_line(void *data, enum gm_style style, const char *line)
{
	struct gm_out *out = data;
	size_t length = strlen(line);

	while (length && line[length - 1] == ' ')
		length--;
	gm_print(out, style, "%.*s", (int)length, line);
	fputc('\n', out->file);
}

static unsigned line_width(void)
{
	const char *columns = getenv("COLUMNS");
	struct winsize size;

	if (columns && atoi(columns) > 0)
		return (unsigned)atoi(columns);
	if (isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col)
		return size.ws_col;
	return ONCE_WIDTH;
}

/* One screen: the head, and as many sites as --top asks for. */
static int print_once(struct gm_cli *cli, const char *path, char *error, size_t error_bytes)
{
	struct gm_out out = gm_cli_out(cli);
	struct gm_options whole = cli->options;
	struct gm_doc *doc;
	struct gm_top top;

	whole.device = whole.kind = whole.level = -1;
	doc = gm_doc_open(path, &whole, error, error_bytes);
	if (!doc)
		return -1;
	gm_top_init(&top, &cli->options);
	gm_top_sample(&top, doc, 0);
	gm_top_growth_by_window(&top, doc);
	top.rows = cli->options.top;
	gm_top_lines(&top, doc, line_width(), UINT_MAX, print_line, &out);
	gm_top_free(&top);
	gm_doc_free(doc);
	return 0;
}

/* The document of the same moment. */
static int print_document(struct gm_cli *cli, const char *path, char *error, size_t error_bytes)
{
	struct gm_doc *doc = gm_doc_open(path, &cli->options, error, error_bytes);

	if (!doc)
		return -1;
	gm_json_write_doc(doc, NULL, NULL, stdout);
	gm_doc_free(doc);
	return 0;
}

/* The file that the argument means: a process's, or itself. NULL after a sentence in `error`. */
static char *find_file(const char *word, char *error, size_t error_bytes)
{
	bool digits = *word && strspn(word, "0123456789") == strlen(word) && strlen(word) < 10;

	if (digits && access(word, F_OK) != 0)
		return gm_find_process_file(atoi(word), error, error_bytes);
	return strdup(word);
}

int gm_cmd_top(struct gm_cli *cli)
{
	char error[1024] = "out of memory", *path;
	int rc;

	if (cli->words_count != 1)
		return gm_usage_error("top shows one process: name its pid or its file");
	path = find_file(cli->words[0], error, sizeof(error));
	rc = !path	       ? -1
	     : cli->options.json ? print_document(cli, path, error, sizeof(error))
	     : cli->once ? print_once(cli, path, error, sizeof(error))
			 : gm_top_run(path, &cli->options, error, sizeof(error));
	free(path);
	if (rc == 0)
		return GM_EXIT_FINE;
	fprintf(stderr, "gpumem-report: %s\n", error);
	return GM_EXIT_INPUT;
}

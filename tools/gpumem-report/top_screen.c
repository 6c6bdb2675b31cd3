/*
 * The live view: reads the files again and again and draws their lines with ncurses. The traced
 * processes are never touched: their files are opened for reading only, and read at most so often
 * that a fifth of one processor is used. Names are looked up only when there are new sites. Of
 * several processes there is a screen of all and one of each.
 */
#include "top_screen.h"
#include "report/doc/options.h"
#include "report/open/open.h"
#include "report/job/job.h"
#include "report/render/text/text.h"
#include "report/render/top/top.h"
#include "report/render/top/top_job.h"
#include <curses.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define REFRESH_S 1.0
#define SHARE	  5 /* of the time, reading takes at most one part in so many */

struct view {
	struct gm_top_process *processes;
	unsigned count, current;
	struct gm_options options;
	bool all; /* of several processes: what they have together, not the current one */
	int row;
	bool typing, help; /* the filter is being typed; keys are being explained */
	char *error;
	size_t error_bytes;
};

static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Reads a file; with names where there are sites without one. False if it cannot be read. */
static bool read_file(struct view *view, struct gm_top_process *process)
{
	struct gm_options quick = view->options;
	struct gm_doc *doc;

	quick.symbols = false;
	doc = gm_doc_open(process->path, &quick, view->error, view->error_bytes);
	if (doc && view->options.symbols && gm_top_wants_places(&process->top, doc)) {
		gm_doc_close(doc);
		doc = gm_doc_open(process->path, &view->options, view->error, view->error_bytes);
	}
	if (!doc)
		return false;
	gm_doc_close(process->doc);
	process->doc = doc;
	gm_top_sample(&process->top, doc, now_s());
	return true;
}

/* Earlier attempts and copies are not counted. */
static void find_superseded(struct view *view)
{
	struct gm_doc **docs = gm_realloc(NULL, view->count * sizeof(struct gm_doc *));

	for (unsigned i = 0; i < view->count; i++) {
		docs[i] = view->processes[i].doc;
		docs[i]->superseded = NULL;
	}
	gm_find_superseded(docs, view->count);
	free(docs);
}

/* Reads all files again. False once none can be read. */
static bool read_files(struct view *view)
{
	unsigned gone = 0;

	for (unsigned i = 0; i < view->count; i++) {
		struct gm_top_process *process = &view->processes[i];

		process->gone = process->gone || !read_file(view, process);
		gone += process->gone;
	}
	find_superseded(view);
	if (gone < view->count)
		*view->error = '\0';
	return gone < view->count;
}

static int compare_processes(const void *a, const void *b)
{
	const struct gm_top_process *x = a, *y = b;

	return gm_compare_ranks(x->doc, y->doc);
}

/* Reads the files for the first time; those that cannot be read are told and left out. */
static unsigned begin(struct view *view, const struct gm_options *options, char *const *paths,
		      unsigned count, void (*complain)(const char *sentence))
{
	view->processes = gm_realloc(NULL, count * sizeof(*view->processes));
	for (unsigned i = 0; i < count; i++) {
		struct gm_top_process *process = &view->processes[view->count];

		*process = (struct gm_top_process){.path = paths[i]};
		gm_top_init(&process->top, options);
		if (read_file(view, process))
			view->count++;
		else
			complain(view->error);
	}
	qsort(view->processes, view->count, sizeof(*view->processes), compare_processes);
	if (view->count)
		find_superseded(view);
	view->all = view->count > 1;
	*view->error = '\0';
	return count - view->count;
}

static struct gm_top *current_top(struct view *view)
{
	return &view->processes[view->current].top;
}

/* From all processes to the first, to the next, and from the last to all. */
static void next_process(struct view *view)
{
	struct gm_top *before = current_top(view);

	if (view->count < 2)
		return;
	if (!view->all)
		view->current = (view->current + 1) % view->count;
	view->all = !view->all && view->current == 0;
	gm_top_choose(current_top(view), before);
}

static void put_line(void *data, enum gm_style style, const char *text)
{
	static const short pairs[] = {[GM_RED] = 1, [GM_YELLOW] = 2, [GM_GREEN] = 3};
	struct view *view = data;
	attr_t attribute = style == GM_BOLD ? A_BOLD : style == GM_DIM ? A_DIM : A_NORMAL;

	if (style >= GM_RED && has_colors())
		attribute = COLOR_PAIR(pairs[style]);
	attrset(attribute);
	mvaddstr(view->row++, 0, text);
	attrset(A_NORMAL);
}

static const char *const keys[] = {
	"l g p t c   sort by live, growth, peak, total, count",
	"d           next device, then all",
	"v           next level (driver, torch, custom), then all",
	"k           next kind, then all",
	"/           only sites whose stack has the text typed; Enter ends it",
	"r           count growth from now",
	"n           next process, then all, where there are several",
	"space       pause, go on",
	"q           quit",
};

static void draw(struct view *view)
{
	int height, width;

	getmaxyx(stdscr, height, width);
	erase();
	view->row = 0;
	if (view->help) {
		for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]) && (int)i < height - 1; i++)
			mvaddnstr((int)i, 0, keys[i], width);
	} else if (height > 1 && view->all) {
		gm_top_job_lines(view->processes, view->count, current_top(view), (unsigned)width,
				 (unsigned)height - 1, put_line, view);
	} else if (height > 1) {
		gm_top_lines(current_top(view), view->processes[view->current].doc, (unsigned)width,
			     (unsigned)height - 1, put_line, view);
	}
	attrset(A_DIM);
	if (view->typing)
		mvprintw(height - 1, 0, "/%.*s", width - 2, current_top(view)->filter);
	else
		mvaddnstr(height - 1, 0,
			  view->count > 1 ? "q quit  h keys  n next process" : "q quit  h keys",
			  width - 1);
	attrset(A_NORMAL);
	refresh();
}

/* The next device after `device` of what is shown, -1 after the last. */
static int next_device(const struct view *view, int device)
{
	int next = -1;

	for (unsigned p = 0; p < view->count; p++) {
		const struct gm_doc *doc = view->processes[p].doc;

		for (unsigned i = 0; i < doc->levels_count && (view->all || p == view->current);
		     i++) {
			int is = doc->levels[i].device;

			if (is > device && (next < 0 || is < next))
				next = is;
		}
	}
	return next;
}

static void type(struct view *view, int key)
{
	char *filter = current_top(view)->filter;
	size_t length = strlen(filter);

	if (key == '\n' || key == KEY_ENTER)
		view->typing = false;
	else if ((key == KEY_BACKSPACE || key == 127 || key == '\b') && length)
		filter[length - 1] = '\0';
	else if (key >= ' ' && key < 127 && length + 1 < sizeof(current_top(view)->filter))
		filter[length] = (char)key;
}

/* False for the key that ends it. */
static bool act(struct view *view, int key)
{
	static const char sorts[] = "lgptc";
	const char *sort = key > 0 && key < 127 ? strchr(sorts, key) : NULL;
	struct gm_top *top = current_top(view);

	if (view->typing) {
		type(view, key);
		return true;
	}
	view->help = key == 'h' || key == '?' ? !view->help : view->help && key == KEY_RESIZE;
	if (sort)
		top->sort = (enum gm_top_sort)(sort - sorts);
	else if (key == 'd')
		top->device = next_device(view, top->device);
	else if (key == 'v')
		top->level = top->level + 1 < GM_LEVELS ? top->level + 1 : -1;
	else if (key == 'k')
		top->kind = top->kind + 1 < GM_KINDS
				    ? (top->kind < 0 ? GM_KIND_DEVICE : top->kind + 1)
				    : -1;
	else if (key == 'r')
		gm_top_reset_growth(top, view->processes[view->current].doc);
	else if (key == 'n')
		next_process(view);
	else if (key == ' ')
		top->paused = !top->paused;
	if (key == '/') {
		view->typing = true;
		memset(top->filter, 0, sizeof(top->filter));
	}
	return key != 'q' && key != 3;
}

static bool open_screen(void)
{
	SCREEN *screen;

	setlocale(LC_ALL, "");
	screen = newterm(NULL, stdout, stdin);
	if (!screen)
		return false;
	set_term(screen);
	cbreak();
	noecho();
	keypad(stdscr, TRUE);
	curs_set(0);
	if (has_colors()) {
		start_color();
		use_default_colors();
		init_pair(1, COLOR_RED, -1);
		init_pair(2, COLOR_YELLOW, -1);
		init_pair(3, COLOR_GREEN, -1);
	}
	return true;
}

/* Waits for a key until the next reading is due. False: quit, or the files are gone. */
static bool step(struct view *view, double *next_s)
{
	double left = *next_s - now_s();
	bool paused = current_top(view)->paused;
	int key;

	/*
	 * The signal of a new size of the terminal ends a wait, but not one that begins after it:
	 * then curses tells of it at the next wait. So no wait lasts for ever.
	 */
	if (paused)
		left = REFRESH_S;
	timeout(left > 0 ? (int)(left * 1000) + 1 : 0);
	key = getch();
	if (key != ERR)
		return act(view, key);
	if (!paused && now_s() >= *next_s) {
		double began = now_s(), took;

		if (!read_files(view))
			return false;
		took = now_s() - began;
		*next_s = began + (took * SHARE > REFRESH_S ? took * SHARE : REFRESH_S);
	}
	return true;
}

int gm_top_run(char *const *paths, unsigned count, const struct gm_options *options,
	       void (*complain)(const char *sentence), char *error, size_t error_bytes)
{
	struct view view = {.options = *options, .error = error, .error_bytes = error_bytes};
	double next_s = now_s() + REFRESH_S;
	unsigned unread;

	/* The view filters for itself: what it hides must be there when the filter changes. */
	view.options.device = view.options.kind = view.options.level = -1;
	unread = begin(&view, options, paths, count, complain);
	if (view.count && (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) || !open_screen())) {
		snprintf(error, error_bytes, "top needs a terminal; --once prints one screen");
	} else if (view.count) {
		do
			draw(&view);
		while (step(&view, &next_s));
		endwin();
	}
	for (unsigned i = 0; i < view.count; i++) {
		gm_doc_close(view.processes[i].doc);
		gm_top_free(&view.processes[i].top);
	}
	free(view.processes);
	return *error ? -1 : (int)unread;
}

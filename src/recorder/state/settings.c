/*
 * The environment variables (settings.h). They are read in the constructor; what is wrong with them
 * is reported at the first CUDA event, so that programs without CUDA print nothing.
 */
#include "recorder/state/settings.h"
#include "account/sampling.h"
#include "base/size_text.h"
#include "recorder/state/launcher.h"
#include "recorder/state/log.h"
#include "stack/stack.h"
#include "store/layout.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PREFIX "GPUMEMTRACE_"
#define BAD_VALUES 16
#define KEPT_BYTES 16384

extern char **environ;

struct gm_settings gm_settings;

static struct {
	const char *entry[BAD_VALUES]; /* "NAME=value" as it stood in the environment */
	const char *wanted[BAD_VALUES]; /* NULL: the name is unknown */
	unsigned count;
	bool reported;
} bad;

/* Copies of the entries, because programs write their titles over the environment's memory. */
static struct {
	char text[KEPT_BYTES];
	size_t used;
} kept;

static const char *keep(const char *entry)
{
	size_t bytes = strlen(entry) + 1;
	char *copy = kept.text + kept.used;

	if (bytes > sizeof(kept.text) - kept.used)
		return NULL;
	memcpy(copy, entry, bytes);
	kept.used += bytes;
	return copy;
}

static bool read_flag(const char *value, bool *flag)
{
	*flag = !strcmp(value, "1");
	return *flag || !strcmp(value, "0") || !*value;
}

static bool read_word(const char *value, const char *const *words, unsigned *index)
{
	unsigned i;

	for (i = 0; words[i]; i++)
		if (!strcmp(value, words[i])) {
			*index = i;
			return true;
		}
	return false;
}

static bool set_disable(const char *v) { return read_flag(v, &gm_settings.disable); }
static bool set_quiet(const char *v) { return read_flag(v, &gm_settings.quiet); }

static bool set_out(const char *v)
{
	gm_settings.out = v;
	return *v != '\0';
}

static bool set_backend(const char *v)
{
	static const char *const words[] = {"preload", "cupti", NULL};

	return read_word(v, words, (unsigned *)&gm_settings.backend);
}

static bool set_stacks(const char *v)
{
	static const char *const words[] = {"full", "native", "python", "off", NULL};

	return read_word(v, words, &gm_settings.stacks);
}

static bool set_depth(const char *v)
{
	char *end;
	unsigned long depth = strtoul(v, &end, 10);

	if (*end || end == v || depth < 1 || depth > GM_MAX_DEPTH)
		return false;
	gm_settings.depth = (unsigned)depth;
	return true;
}

static bool set_start(const char *v)
{
	static const char *const words[] = {"now", "asleep", NULL};
	unsigned index = gm_settings.asleep;
	bool good = read_word(v, words, &index);

	gm_settings.asleep = index;
	return good;
}

static bool set_torch(const char *v)
{
	static const char *const words[] = {"off", "auto", NULL};
	unsigned index = gm_settings.torch;
	bool good = read_word(v, words, &index);

	gm_settings.torch = index;
	return good;
}

static bool set_stack_cache(const char *v)
{
	static const char *const words[] = {"on", "off", NULL};
	unsigned index = gm_settings.no_stack_cache;
	bool good = read_word(v, words, &index);

	gm_settings.no_stack_cache = index;
	return good;
}

static bool set_unwinder(const char *v)
{
	static const char *const words[] = {"auto", "tables", "libunwind", "libgcc",
					    "fp",   "check",  NULL};

	return read_word(v, words, &gm_settings.unwinder);
}

static bool set_events(const char *v)
{
	static const char *const words[] = {"ring", "off", "all", NULL};

	return read_word(v, words, (unsigned *)&gm_settings.events);
}

static bool set_max_file(const char *v)
{
	uint64_t bytes;

	if (!gm_parse_size(v, &bytes) || bytes < GM_MIN_FILE_BYTES)
		return false;
	gm_settings.max_file_bytes = bytes < GM_MAX_FILE_BYTES ? bytes : GM_MAX_FILE_BYTES;
	return true;
}

static bool set_max_events(const char *v)
{
	uint64_t bytes;

	if (!gm_parse_size(v, &bytes) || bytes == 0)
		return false;
	gm_settings.max_events_bytes = bytes;
	return true;
}

/* Reads decimal digits that fit into 64 bits; *end is what follows them. */
static bool read_count(const char *v, uint64_t *count, char **end)
{
	if (*v < '0' || *v > '9')
		return false;
	errno = 0;
	*count = strtoull(v, end, 10);
	return errno == 0;
}

/* Reads "SIZE" or "SIZE,seed=7". */
static bool set_sample(const char *v)
{
	char size[32];
	size_t bytes = strcspn(v, ",");
	uint64_t seed = 0, mean;
	char *end = NULL;

	if (bytes >= sizeof(size))
		return false;
	memcpy(size, v, bytes);
	size[bytes] = '\0';
	if (v[bytes] && (strncmp(v + bytes, ",seed=", 6) != 0 ||
			 !read_count(v + bytes + 6, &seed, &end) || *end))
		return false;
	if (!gm_parse_size(size, &mean) || !mean || mean > GM_MOST_SAMPLE_BYTES)
		return false;
	gm_settings.sample_bytes = mean;
	gm_settings.sample_seed = seed;
	return true;
}

static bool set_signal(const char *v)
{
	static const struct {
		const char *name;
		int number;
	} signals[] = {{"HUP", SIGHUP},	  {"USR1", SIGUSR1}, {"USR2", SIGUSR2}, {"PROF", SIGPROF},
		       {"WINCH", SIGWINCH}, {"URG", SIGURG}, {"IO", SIGIO}, {"PWR", SIGPWR},
		       {"ALRM", SIGALRM}, {"VTALRM", SIGVTALRM}, {"QUIT", SIGQUIT},
		       {"TSTP", SIGTSTP}, {"CONT", SIGCONT}, {"TERM", SIGTERM}, {"INT", SIGINT}};
	const char *name = strncmp(v, "SIG", 3) ? v : v + 3;
	size_t i;

	for (i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		if (!strcmp(name, signals[i].name)) {
			gm_settings.signal = signals[i].number;
			return true;
		}
	if (!strncmp(name, "RTMIN+", 6)) {
		char *end;
		long n = strtol(name + 6, &end, 10);

		if (!*end && n >= 0 && SIGRTMIN + n <= SIGRTMAX) {
			gm_settings.signal = SIGRTMIN + (int)n;
			return true;
		}
	}
	return false;
}

static bool set_ranges(const char *v)
{
	static const char *const words[] = {"on", "off", NULL};
	unsigned index = gm_settings.no_ranges;
	bool good = read_word(v, words, &index);

	gm_settings.no_ranges = index;
	return good;
}

static bool set_mark(const char *v)
{
	gm_settings.mark_range = *v ? v : NULL;
	return *v != '\0';
}

static bool set_holders(const char *v)
{
	static const char *const words[] = {"oom", "mark", "signal", NULL};
	unsigned moment;

	if (read_word(v, words, &moment))
		gm_settings.holders = 1u << moment;
	else if (strncmp(v, "grow:", 5) || !gm_parse_size(v + 5, &gm_settings.holders_grow_bytes) ||
		 !gm_settings.holders_grow_bytes)
		return false;
	else
		gm_settings.holders = 1u << GM_HOLDERS_GROW;
	return true;
}

static bool set_capacity(const char *v)
{
	uint64_t bytes;

	if (!gm_parse_size(v, &bytes) || bytes == 0)
		return false;
	gm_settings.capacity_bytes = bytes;
	return true;
}

/* Reads "N", "N+" or "p=0.01,seed=7". */
static bool set_fail(const char *v)
{
	uint64_t number;
	char *end;

	if (!strncmp(v, "p=", 2)) {
		double share = strtod(v + 2, &end);
		uint64_t seed = 1;

		if (!strncmp(end, ",seed=", 6) && !read_count(end + 6, &seed, &end))
			return false;
		if (*end || !(share > 0 && share <= 1)) /* false for NaN too */
			return false;
		gm_settings.fail_share = share;
		gm_settings.fail_seed = seed;
		return true;
	}
	if (*v == '0' || !read_count(v, &number, &end) || (*end && strcmp(end, "+") != 0))
		return false;
	gm_settings.fail_from = number;
	gm_settings.fail_to = *end ? UINT64_MAX : number;
	return true;
}

static bool set_log(const char *v)
{
	static const char *const words[] = {"error", "warn", "info", "debug", NULL};

	return read_word(v, words, (unsigned *)&gm_log_level);
}

static const struct setting {
	const char *name, *fallback;
	bool (*set)(const char *value);
	const char *wanted;
} table[] = {
	{"DISABLE", NULL, set_disable, "1 or nothing"},
	{"OUT", "gpumemtrace.%p.gmt", set_out, "a file name"},
	{"START", "now", set_start, "now or asleep"},
	{"BACKEND", "preload", set_backend, "preload or cupti"},
	{"STACKS", "full", set_stacks, "full, native, python or off"},
	{"DEPTH", "64", set_depth, "a number from 1 to 256"},
	{"STACK_CACHE", NULL, set_stack_cache, "on or off"},
	{"UNWINDER", NULL, set_unwinder, "auto, tables, libunwind, libgcc, fp or check"},
	{"TORCH", "auto", set_torch, "auto or off"},
	{"EVENTS", "ring", set_events, "ring, off or all"},
	{"MAX_FILE", "256MiB", set_max_file, "a size of 1MiB and more, such as 64MiB"},
	{"MAX_EVENTS", "4GiB", set_max_events, "a size such as 1GiB"},
	{"SAMPLE", NULL, set_sample, "a size up to 1GiB such as 4MiB, or 4MiB,seed=7"},
	{"SIGNAL", NULL, set_signal, "a signal name such as USR1"},
	{"MARK", NULL, set_mark, "the name of an NVTX range"},
	{"RANGES", NULL, set_ranges, "on or off"},
	{"HOLDERS", NULL, set_holders, "oom, mark, signal or grow:SIZE"},
	{"CAPACITY", NULL, set_capacity, "a size such as 16GiB"},
	{"FAIL", NULL, set_fail, "N, N+ or p=0.01,seed=7"},
	{"QUIET", NULL, set_quiet, "1 or nothing"},
	{"LOG", "warn", set_log, "warn, error, info or debug"},
};

#define SETTINGS (sizeof(table) / sizeof(*table))

static const char *in_force[SETTINGS]; /* the value that is in force, NULL: unset */

static void note_bad(const char *entry, const char *wanted)
{
	if (bad.count < BAD_VALUES) {
		bad.entry[bad.count] = entry;
		bad.wanted[bad.count] = wanted;
		bad.count++;
	}
}

static void read_entry(const char *entry)
{
	const char *name = entry + strlen(PREFIX), *equals = strchr(entry, '=');
	size_t i;

	if (!equals)
		return;
	for (i = 0; i < SETTINGS; i++) {
		size_t bytes = strlen(table[i].name);

		if ((size_t)(equals - name) != bytes || strncmp(name, table[i].name, bytes))
			continue;
		if (table[i].set(equals + 1)) {
			in_force[i] = equals + 1;
		} else {
			note_bad(entry, table[i].wanted);
			if (table[i].fallback)
				table[i].set(table[i].fallback);
		}
		return;
	}
	note_bad(entry, NULL);
}

static void find_refuses(void)
{
	gm_settings.refuses = gm_settings.capacity_bytes != UINT64_MAX || gm_settings.fail_from ||
			      gm_settings.fail_share > 0;
}

void gm_settings_read(void)
{
	char **entry;
	size_t i;

	gm_settings = (struct gm_settings){.capacity_bytes = UINT64_MAX};
	gm_log_init();
	for (i = 0; i < SETTINGS; i++) {
		in_force[i] = table[i].fallback;
		if (table[i].fallback)
			table[i].set(table[i].fallback);
	}
	for (entry = environ; entry && *entry; entry++)
		if (!strncmp(*entry, PREFIX, strlen(PREFIX))) {
			const char *copy = keep(*entry);

			if (copy)
				read_entry(copy);
		}
	find_refuses();
}

bool gm_settings_apply(const char *lines)
{
	static char text[KEPT_BYTES];
	char *line, *next;

	if (strlen(lines) >= sizeof(text))
		return false;
	strcpy(text, lines);
	for (line = text; *line; line = next) {
		next = strchr(line, '\n');
		next = next ? next : line + strlen(line);
		if (*next)
			*next++ = '\0';
		if (!strncmp(line, PREFIX, strlen(PREFIX)))
			read_entry(line);
	}
	find_refuses();
	return true;
}

void gm_settings_report(void)
{
	unsigned i;

	if (bad.reported)
		return;
	bad.reported = true;
	for (i = 0; i < bad.count; i++) {
		if (bad.wanted[i])
			gm_log(GM_LOG_WARN, "%.80s: not understood, ignored; it takes %s",
			       bad.entry[i], bad.wanted[i]);
		else
			gm_log(GM_LOG_WARN,
			       "%.*s: no such setting, ignored; see the README for the names",
			       (int)strcspn(bad.entry[i], "="), bad.entry[i]);
	}
}

size_t gm_settings_print(char *text, size_t bytes)
{
	size_t used = 0, i;

	for (i = 0; i < SETTINGS; i++) {
		int written;

		if (!in_force[i])
			continue;
		written = snprintf(text + used, bytes - used, PREFIX "%s=%s\n", table[i].name,
				   in_force[i]);
		if (written < 0 || (size_t)written >= bytes - used)
			break;
		used += (size_t)written;
	}
	text[used] = '\0';
	return used;
}

int gm_settings_expand_out(char *path, size_t bytes)
{
	const char *from = gm_settings.out, *rank = gm_launcher_rank();
	char host[256] = "host", pid[24];
	size_t used = 0;

	gethostname(host, sizeof(host) - 1);
	snprintf(pid, sizeof(pid), "%d", getpid());
	for (; *from; from++) {
		char literal[3] = {*from};
		const char *piece = literal;

		if (*from == '%' && from[1]) {
			switch (*++from) {
			case 'p': piece = pid; break;
			case 'h': piece = host; break;
			case 'r': piece = rank ? rank : ""; break;
			case 'n': piece = program_invocation_short_name; break;
			case '%': piece = "%"; break;
			default: literal[1] = *from; break;
			}
		}
		if (used + strlen(piece) >= bytes)
			return -ENAMETOOLONG;
		memcpy(path + used, piece, strlen(piece));
		used += strlen(piece);
	}
	path[used] = '\0';
	return 0;
}

/*
 * The environment variables of contract.md. settings.c has one table of their names, defaults and
 * readers.
 */
#ifndef GM_RECORDER_SETTINGS_H
#define GM_RECORDER_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum gm_backend { GM_BACKEND_PRELOAD, GM_BACKEND_CUPTI };
enum gm_events { GM_EVENTS_RING, GM_EVENTS_OFF, GM_EVENTS_ALL };

/* The moments of GPUMEMTRACE_HOLDERS. */
enum gm_holders_moment { GM_HOLDERS_OOM, GM_HOLDERS_MARK, GM_HOLDERS_SIGNAL, GM_HOLDERS_GROW };

struct gm_settings {
	bool disable, quiet, torch, no_stack_cache;
	bool asleep; /* record only when gpumem-report start says so (process/sleep.h) */
	bool attached; /* by gpumem-report attach: calls came before, and some are not seen */
	bool refuses; /* a capacity, or failures: some allocations are to be refused */
	const char *out;	/* pattern, unexpanded */
	enum gm_backend backend;
	unsigned stacks;	/* enum gm_stack_mode */
	unsigned unwinder;	/* enum gm_stack_unwinder */
	unsigned depth;
	enum gm_events events;
	uint64_t max_file_bytes, max_events_bytes;
	uint64_t sample_bytes, sample_seed; /* 0: no sampling; drawn at the start */
	int signal;		/* 0: none */
	const char *mark_range; /* NVTX range name, NULL: none */
	bool no_ranges;		/* names of ranges are not recorded */
	unsigned holders; /* a bit for each moment at which holders are looked for */
	uint64_t holders_grow_bytes;
	uint64_t capacity_bytes; /* UINT64_MAX: unset */
	uint64_t fail_from, fail_to; /* allocation calls that fail, counted from 1; 0: none */
	double fail_share;	/* 0: none */
	uint64_t fail_seed;
};

extern struct gm_settings gm_settings __attribute__((visibility("hidden")));

/* Reads the environment. Bad values are kept for gm_settings_report. Single thread; no malloc. */
void gm_settings_read(void);

/*
 * Applies "GPUMEMTRACE_NAME=value\n" lines on top of what is in force. They are copied, in the
 * place of those of the call before. False if they are too long. Single thread; no malloc.
 */
bool gm_settings_apply(const char *lines);

/* Reports on stderr, once, what was wrong with the environment. */
void gm_settings_report(void);

/* Writes "NAME=value\n" for every setting in force. Returns the length without the final 0. */
size_t gm_settings_print(char *text, size_t bytes);

/* Writes GPUMEMTRACE_OUT with %p, %h, %r, %n and %% replaced. Returns 0 or -ENAMETOOLONG. */
int gm_settings_expand_out(char *path, size_t bytes);

#endif

/*
 * The environment variables of contract.md: one table of names, defaults and readers (settings.c).
 */
#ifndef GM_RECORDER_SETTINGS_H
#define GM_RECORDER_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum gm_backend { GM_BACKEND_PRELOAD, GM_BACKEND_CUPTI };
enum gm_events { GM_EVENTS_RING, GM_EVENTS_OFF, GM_EVENTS_ALL };

struct gm_settings {
	bool disable, quiet, torch, no_stack_cache;
	bool refuses; /* a capacity, or failures: some allocations are to be refused */
	const char *out;	/* pattern, unexpanded */
	enum gm_backend backend;
	unsigned stacks;	/* enum gm_stack_mode */
	unsigned unwinder;	/* enum gm_stack_unwinder */
	unsigned depth;
	enum gm_events events;
	uint64_t max_file_bytes, max_events_bytes;
	int signal;		/* 0: none */
	const char *mark_range; /* NVTX range name, NULL: none */
	uint64_t capacity_bytes; /* UINT64_MAX: unset */
	uint64_t fail_from, fail_to; /* allocation calls that fail, counted from 1; 0: none */
	double fail_share;	/* 0: none */
	uint64_t fail_seed;
};

extern struct gm_settings gm_settings __attribute__((visibility("hidden")));

/* Reads the environment once. Bad values are kept for gm_settings_report. No malloc. */
void gm_settings_read(void);

/* Says once on stderr what was wrong with the environment. */
void gm_settings_report(void);

/* "NAME=value\n" of every setting in force, for the file. Returns the length used. */
size_t gm_settings_print(char *text, size_t bytes);

/* GPUMEMTRACE_OUT with %p, %h, %r, %n and %% filled in. Returns 0 or -ENAMETOOLONG. */
int gm_settings_expand_out(char *path, size_t bytes);

#endif

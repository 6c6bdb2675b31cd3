/*
 * The reason why a process cannot be attached to, as a sentence with the remedy.
 */
#ifndef GM_ATTACH_REFUSAL_H
#define GM_ATTACH_REFUSAL_H

#include "attach/target.h"

/*
 * Looks for what forbids to attach: no such process, another tracer, no permission. `proc` is where
 * the proc filesystem is mounted. Changes nothing. Returns false after a sentence in `error`.
 */
bool gm_may_attach(const char *proc, pid_t pid, char *error, size_t error_bytes);

/*
 * Looks for what makes attaching impossible: another architecture, a static program, a C library
 * that is not glibc, shadow stacks. Returns false after a sentence in `error`.
 */
bool gm_can_load(const char *proc, const struct gm_target *target, char *error, size_t error_bytes);

#endif

/*
 * Why a process cannot be attached to, as a sentence with what to do about it.
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
 * The same for what makes it impossible: another architecture, a static program, a C library that
 * is not glibc, shadow stacks.
 */
bool gm_can_load(const char *proc, const struct gm_target *target, char *error, size_t error_bytes);

#endif

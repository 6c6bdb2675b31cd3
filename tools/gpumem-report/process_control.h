/*
 * Functions that start, stop, attach, detach and watch share. Each function prints its result and
 * returns an exit status.
 */
#ifndef GPUMEM_REPORT_PROCESS_CONTROL_H
#define GPUMEM_REPORT_PROCESS_CONTROL_H

#include "cli.h"
#include "attach/control.h"

/* Asks the process whose file this is to record or to sleep (cmd_start.c). */
int gm_ask_process(const struct gm_cli *cli, const char *path, int pid, enum gm_wanted wanted);

/*
 * Attaches to a process, or wakes it if it was started under the shim, and waits until it records;
 * and the opposite of what that did (cmd_attach.c). *path is the file, to be freed, or NULL;
 * *attached tells the two apart.
 */
int gm_attach_process(struct gm_cli *cli, int pid, char **path, bool *attached);
int gm_detach_process(struct gm_cli *cli, int pid);

#endif

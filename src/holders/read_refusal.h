/*
 * The message for a process that the system does not let this user read, as a pure function.
 */
#ifndef GM_HOLDERS_READ_REFUSAL_H
#define GM_HOLDERS_READ_REFUSAL_H

#include <stdbool.h>
#include <stddef.h>

struct gm_read_refusal {
	int pid;
	int reason;	 /* errno of process_vm_readv */
	int scope;	 /* kernel.yama.ptrace_scope; 0 where the kernel has none */
	bool other_user; /* this user is not root, and the process is not its own */
};

/* Writes one sentence that names the process and what to do. */
void gm_read_refusal_text(const struct gm_read_refusal *refusal, char *text, size_t bytes);

#endif

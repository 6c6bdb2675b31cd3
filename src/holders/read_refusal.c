/*
 * The reason why another process's memory cannot be read (read_refusal.h). Sources: man 2 ptrace,
 * "Ptrace access mode checking"; the kernel's Documentation/admin-guide/LSM/Yama.rst.
 */
#include "holders/read_refusal.h"

#include <errno.h>
#include <stdio.h>

void gm_read_refusal_text(const struct gm_read_refusal *refusal, char *text, size_t bytes)
{
	int pid = refusal->pid;

	if (refusal->reason == ESRCH)
		snprintf(text, bytes, "there is no process %d any more", pid);
	else if (refusal->reason == ENOSYS)
		snprintf(text, bytes,
			 "the system does not have process_vm_readv, which reads another process");
	else if (refusal->scope >= 3)
		snprintf(text, bytes,
			 "the system lets nobody read the memory of process %d: "
			 "kernel.yama.ptrace_scope is %d, which only a restart of the system "
			 "changes",
			 pid, refusal->scope);
	else if (refusal->other_user)
		snprintf(text, bytes,
			 "process %d belongs to another user: only that user or root may read its "
			 "memory",
			 pid);
	else if (refusal->scope)
		snprintf(text, bytes,
			 "the system does not let this user read the memory of process %d: "
			 "kernel.yama.ptrace_scope is %d; run as root, or set it to 0 for the "
			 "time being",
			 pid, refusal->scope);
	else
		snprintf(text, bytes,
			 "the system does not let this user read the memory of process %d: it has "
			 "more privileges, or the container lacks CAP_SYS_PTRACE",
			 pid);
}

/*
 * The reason why a process cannot be attached to (refusal.h).
 *
 * The kernel answers every refused PTRACE_SEIZE by EPERM. Which rule refused it follows from
 * TracerPid, the users, the capabilities and yama's level [ptrace(2), "Ptrace access mode
 * checking"]. Opening /proc/PID/mem for writing needs the same permission and does nothing.
 */
#include "attach/refusal.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CAP_SYS_PTRACE 19

/* The facts of /proc/PID/status that decide. */
struct status {
	int tracer;
	unsigned threads;
	unsigned uid; /* effective */
	uint64_t capabilities;
	char state;
	bool shadow_stack;
};

static bool read_status(const char *proc, const char *process, struct status *status)
{
	char path[PATH_MAX], line[512];
	unsigned real;
	FILE *file;

	*status = (struct status){0};
	snprintf(path, sizeof(path), "%s/%s/status", proc, process);
	file = fopen(path, "re");
	if (!file)
		return false;
	while (fgets(line, sizeof(line), file)) {
		sscanf(line, "TracerPid: %d", &status->tracer);
		sscanf(line, "State: %c", &status->state);
		sscanf(line, "Threads: %u", &status->threads);
		sscanf(line, "Uid: %u %u", &real, &status->uid);
		sscanf(line, "CapEff: %lx", &status->capabilities);
		if (strncmp(line, "x86_Thread_features:", 20) == 0)
			status->shadow_stack = strstr(line, "shstk") != NULL;
	}
	fclose(file);
	return true;
}

static int yama_level(const char *proc)
{
	char path[PATH_MAX];
	int level = 0;
	FILE *file;

	snprintf(path, sizeof(path), "%s/sys/kernel/yama/ptrace_scope", proc);
	file = fopen(path, "re");
	if (file && fscanf(file, "%d", &level) != 1)
		level = 0;
	if (file)
		fclose(file);
	return level;
}

static void explain_yama(int level, pid_t pid, char *error, size_t bytes)
{
	if (level >= 3)
		snprintf(error, bytes,
			 "kernel.yama.ptrace_scope is 3: nobody may attach to a process until the "
			 "machine is started anew");
	else if (level == 2)
		snprintf(error, bytes,
			 "kernel.yama.ptrace_scope is 2: attaching to process %d takes "
			 "CAP_SYS_PTRACE; use sudo, in a container --cap-add SYS_PTRACE",
			 pid);
	else
		snprintf(error, bytes,
			 "kernel.yama.ptrace_scope is 1: process %d may be attached to by its "
			 "parents and with CAP_SYS_PTRACE; use sudo, in a container --cap-add "
			 "SYS_PTRACE, or set it to 0",
			 pid);
}

/* /proc/PID/mem could not be opened for writing. */
static void explain_permission(const char *proc, pid_t pid, const struct status *target,
			       char *error, size_t bytes)
{
	struct status own;
	int level = yama_level(proc);

	read_status(proc, "self", &own);
	if (level >= 3) {
		explain_yama(level, pid, error, bytes);
	} else if (own.capabilities & 1ull << CAP_SYS_PTRACE) {
		snprintf(error, bytes,
			 "process %d may not be attached to, although CAP_SYS_PTRACE is there: it "
			 "belongs to another user namespace, or a security module refuses it",
			 pid);
	} else if (target->uid != own.uid) {
		snprintf(error, bytes,
			 "process %d belongs to user %u and this one is user %u: run gpumem-report "
			 "as that user, or with CAP_SYS_PTRACE (sudo)",
			 pid, target->uid, own.uid);
	} else if (target->capabilities & ~own.capabilities) {
		snprintf(error, bytes,
			 "process %d has capabilities that this one lacks: attaching takes "
			 "CAP_SYS_PTRACE; use sudo, in a container --cap-add SYS_PTRACE",
			 pid);
	} else if (level) {
		explain_yama(level, pid, error, bytes);
	} else {
		snprintf(error, bytes,
			 "process %d may not be attached to: it is not dumpable "
			 "(prctl(PR_SET_DUMPABLE), a setuid program), which takes CAP_SYS_PTRACE",
			 pid);
	}
}

static bool has_permission(const char *proc, pid_t pid)
{
	char path[PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "%s/%d/mem", proc, pid);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* The program's ELF header is of another kind than ours. */
static bool is_foreign(const char *proc, const struct gm_target *target, char *error, size_t bytes)
{
	Elf64_Ehdr header = {0};
	char path[PATH_MAX];
	bool read_it;
	int fd;

	snprintf(path, sizeof(path), "%s/%d/exe", proc, target->pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	read_it = fd >= 0 && read(fd, &header, sizeof(header)) == (ssize_t)sizeof(header);
	if (fd >= 0)
		close(fd);
	if (!read_it || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
		return false; /* the checks that follow find out more */
#ifndef __x86_64__
	snprintf(error, bytes,
		 "attaching is possible on x86-64 only; start the program with "
		 "GPUMEMTRACE_START=asleep instead");
	return true;
#else
	if (header.e_machine == EM_X86_64 && header.e_ident[EI_CLASS] == ELFCLASS64)
		return false;
	snprintf(error, bytes, "process %d is no 64-bit x86 program", target->pid);
	return true;
#endif
}

static bool has_no_loader(const struct gm_target *target, char *error, size_t bytes)
{
	if (gm_target_find(target, "libc.so.6") || gm_target_find(target, "libc-2."))
		return false;
	if (gm_target_find(target, "ld-linux") || gm_target_find(target, "ld-2."))
		snprintf(error, bytes,
			 "process %d is starting: its C library is not loaded yet; try again",
			 target->pid);
	else if (gm_target_find(target, "ld-musl") || gm_target_find(target, "libc.musl"))
		snprintf(error, bytes,
			 "process %d uses musl, and the shim needs glibc as its C library",
			 target->pid);
	else
		snprintf(error, bytes,
			 "process %d is a static program: it has no loader that could load the "
			 "shim",
			 target->pid);
	return true;
}

bool gm_may_attach(const char *proc, pid_t pid, char *error, size_t error_bytes)
{
	struct status status;
	char process[16];

	snprintf(process, sizeof(process), "%d", pid);
	if (pid == getpid() || !read_status(proc, process, &status)) {
		snprintf(error, error_bytes, "there is no process %d to attach to", pid);
		return false;
	}
	if (status.state == 'Z' || status.state == 'X') {
		snprintf(error, error_bytes,
			 status.threads > 1
				 ? "the main thread of process %d has ended, and with it "
				   "what /proc shows of the process"
				 : "process %d has ended",
			 pid);
		return false;
	}
	if (status.tracer) {
		snprintf(error, error_bytes,
			 "process %d is traced by process %d, a debugger or strace: it has to be "
			 "detached first",
			 pid, status.tracer);
		return false;
	}
	if (status.state == 'T') {
		snprintf(error, error_bytes,
			 "process %d is stopped (SIGSTOP, Ctrl-Z) and has to go on first", pid);
		return false;
	}
	if (has_permission(proc, pid))
		return true;
	explain_permission(proc, pid, &status, error, error_bytes);
	return false;
}

bool gm_can_load(const char *proc, const struct gm_target *target, char *error,
		 size_t error_bytes)
{
	struct status status;
	char process[16];

	snprintf(process, sizeof(process), "%d", target->pid);
	if (is_foreign(proc, target, error, error_bytes) ||
	    has_no_loader(target, error, error_bytes))
		return false;
	if (!read_status(proc, process, &status) || !status.shadow_stack)
		return true;
	snprintf(error, error_bytes,
		 "process %d has a shadow stack (CET), which a call from outside would break; "
		 "start it with GPUMEMTRACE_START=asleep instead",
		 target->pid);
	return false;
}

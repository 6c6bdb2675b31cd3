/*
 * The description of the recorded process in the file (describe.h).
 */
#include "recorder/process/describe.h"
#include "recorder/state/launcher.h"
#include "recorder/state/settings.h"
#include "stack/stack.h"
#include "store/descriptor.h"
#include "store/journal.h"
#include "store/output_path.h"
#include "store/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/*
 * Buffers in which texts are made, under the start lock. The first call of a program may come on a
 * coroutine's stack of 16 KiB.
 */
static struct {
	char raw[4096], text[8192];
} scratch;

static uint32_t read_proc(const char *path, char *text, size_t bytes)
{
	int fd = gm_open(path, O_RDONLY, 0);
	ssize_t got = fd < 0 ? -1 : read(fd, text, bytes - 1);

	if (fd >= 0)
		close(fd);
	if (got < 0)
		got = 0;
	text[got] = '\0';
	return (uint32_t)got;
}

/* The arguments as one string, each ended by a line feed. */
static uint32_t command_string(void)
{
	char *raw = scratch.raw, *text = scratch.text;
	uint32_t got = read_proc("/proc/self/cmdline", raw, sizeof(scratch.raw)), i, used = 0;

	for (i = 0; i < got && used + 2 < sizeof(scratch.text); i++) {
		if (raw[i] == '\0') {
			text[used++] = '\n';
			continue;
		}
		if (raw[i] == '\\' || raw[i] == '\n')
			text[used++] = '\\';
		text[used++] = raw[i] == '\n' ? 'n' : raw[i];
	}
	text[used] = '\0';
	if (!used) /* without /proc the program's name is all there is */
		snprintf(text, sizeof(scratch.text), "%s\n", program_invocation_name);
	return gm_store_string(text, sizeof(scratch.text));
}

static uint32_t environment_string(const char *const *names)
{
	char *text = scratch.raw;
	size_t used = 0, room = sizeof(scratch.raw) / 2;

	for (; *names; names++) {
		const char *value = getenv(*names);

		if (value && used < room - 1)
			used += (size_t)snprintf(text + used, room - used, "%s=%s\n", *names,
						 value);
	}
	return used ? gm_store_string(text, (uint32_t)room) : GM_NONE;
}

static void describe_job(struct gm_header *header)
{
	gm_launcher_describe(header);
	header->job_string = environment_string(gm_launcher_variables);
}

void gm_describe_stacks(void)
{
	struct gm_header *header = gm_file;

	header->unwinder_string = gm_store_string(gm_stack_unwinder(), 64);
	header->python_string = gm_store_string(gm_stack_python(), 255);
	if (*gm_stack_python())
		header->features |= GM_FEATURE_PYTHON;
}

void gm_describe_backend(void)
{
	bool cupti = gm_settings.backend == GM_BACKEND_CUPTI;

	if (!gm_file)
		return;
	gm_file->backend_string = gm_store_string(cupti ? "cupti" : "preload", 64);
	if (cupti)
		gm_file->features |= GM_FEATURE_CUPTI;
	else
		gm_file->features &= ~GM_FEATURE_CUPTI;
}

void gm_describe_settings(void)
{
	char text[4096];

	gm_settings_print(text, sizeof(text));
	gm_file->settings_string = gm_store_string(text, sizeof(text));
}

void gm_describe_process(void)
{
	struct gm_header *header = gm_file;
	static const char *const advice[] = {
		"PYTORCH_CUDA_ALLOC_CONF",	    "PYTORCH_ALLOC_CONF",
		"PYTORCH_NO_CUDA_MEMORY_CACHING",   "CUDA_VISIBLE_DEVICES",
		"XLA_PYTHON_CLIENT_PREALLOCATE",    "XLA_PYTHON_CLIENT_MEM_FRACTION",
		"TF_FORCE_GPU_ALLOW_GROWTH",	    "CUDA_MODULE_LOADING",
		"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", NULL};
	char *text = scratch.raw;
	struct timespec now;

	syscall(SYS_clock_gettime, CLOCK_REALTIME,
		&now); /* as gm_monotonic_ns, which may have to */
	header->started_realtime_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	header->pid = (uint32_t)getpid();
	header->ppid = (uint32_t)getppid();
	header->pid_start_ticks = gm_process_start_ticks((int)header->pid);
	header->exit_status = -1;
	header->command_string = command_string();
	header->cwd_string =
		getcwd(text, sizeof(scratch.raw)) ? gm_store_string(text, sizeof(scratch.raw))
						  : GM_NONE;
	text[0] = '\0';
	gethostname(text, sizeof(scratch.raw) - 1);
	header->host_string = gm_store_string(text, 255);
	header->program_string = gm_store_string(program_invocation_short_name, 255);
	gm_describe_settings();
	header->environment_string = environment_string(advice);
	header->tracer_version_string = gm_store_string(GM_VERSION, 64);
	gm_describe_backend();
	gm_describe_stacks();
	header->heap_limit_bytes = GM_NO_BYTES;
	header->stack_limit_bytes = GM_NO_BYTES;
	describe_job(header);
}

/*
 * Queries to NVML (nvml.h).
 */
#include "recorder/query/nvml.h"
#include "stack/elf_symbols.h"
#include "store/descriptor.h"
#include "store/lock.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

#define DEVICES	       64
#define MOST_PROCESSES 128

struct memory { /* nvmlMemory_t */
	unsigned long long total, free, used;
};

struct process { /* nvmlProcessInfo_t of the second and third version of the call */
	unsigned int pid;
	unsigned long long used;
	unsigned int gpu_instance, compute_instance;
};

static struct {
	struct gm_lock lock;
	int (*init)(void); /* called at the first query, because it takes long; then NULL */
	int (*processes)(void *device, unsigned int *count, struct process *list);
	int (*handle_by_uuid)(const char *uuid, void **device);
	int (*memory_info)(void *device, struct memory *memory);
	struct {
		uint8_t uuid[16];
		void *handle;
	} known[DEVICES];
	unsigned count;
} nvml;

void gm_nvml_open(void)
{
	void *(*open)(const char *, int) = gm_objects_symbol("dlopen", NULL);

	if (!open)
		open = gm_objects_symbol("__libc_dlopen_mode", NULL);
	if (!open || !open("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL))
		return;
	nvml.init = gm_objects_symbol("nvmlInit_v2", NULL);
	nvml.processes = gm_objects_symbol("nvmlDeviceGetComputeRunningProcesses_v3", NULL);
	if (!nvml.processes)
		nvml.processes = gm_objects_symbol("nvmlDeviceGetComputeRunningProcesses_v2", NULL);
	nvml.memory_info = gm_objects_symbol("nvmlDeviceGetMemoryInfo", NULL);
	nvml.handle_by_uuid = gm_objects_symbol("nvmlDeviceGetHandleByUUID", NULL);
}

/*
 * NVML's handle of a UUID: CUDA names a GPU, or a part that MIG made of one, by bytes, and NVML by
 * text.
 */
static void *find(const uint8_t uuid[16])
{
	static const char *const prefixes[] = {"GPU", "MIG"};
	char hex[33], text[64];
	void *handle = NULL;
	unsigned i;

	for (i = 0; i < 16; i++)
		snprintf(hex + 2 * i, 3, "%02x", uuid[i]);
	for (i = 0; i < 2; i++) {
		snprintf(text, sizeof(text), "%s-%.8s-%.4s-%.4s-%.4s-%.12s", prefixes[i], hex,
			 hex + 8, hex + 12, hex + 16, hex + 20);
		if (nvml.handle_by_uuid(text, &handle) == 0)
			return handle;
	}
	return NULL;
}

static void *device_of(const uint8_t uuid[16])
{
	void *handle;
	unsigned i;

	if (nvml.init) {
		struct gm_low_numbers numbers;

		gm_low_numbers_take(&numbers);
		if (nvml.init() != 0)
			nvml.handle_by_uuid = NULL;
		gm_low_numbers_give_back(&numbers);
	}
	nvml.init = NULL;
	if (!nvml.handle_by_uuid)
		return NULL;
	for (i = 0; i < nvml.count; i++)
		if (!__builtin_memcmp(nvml.known[i].uuid, uuid, 16))
			return nvml.known[i].handle;
	handle = find(uuid);
	if (handle && nvml.count < DEVICES) {
		__builtin_memcpy(nvml.known[nvml.count].uuid, uuid, 16);
		nvml.known[nvml.count++].handle = handle;
	}
	return handle;
}

/*
 * Begins a query unless another thread makes one. NVML opens files, at which a thread may be
 * cancelled (pthreads(7)): it would leave NVML's locks held, and end in a call that is no
 * cancellation point. `cancel` is the state for end_query.
 */
static bool begin_query(int *cancel)
{
	if (!gm_lock_try(&nvml.lock))
		return false;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, cancel);
	return true;
}

static void end_query(int cancel)
{
	pthread_setcancelstate(cancel, NULL);
	gm_lock_release(&nvml.lock);
}

bool gm_nvml_used(const uint8_t uuid[16], uint64_t *used_bytes)
{
	struct memory memory;
	void *device;
	bool answered = false;
	int cancel;

	if (!begin_query(&cancel))
		return false;
	if (nvml.handle_by_uuid && nvml.memory_info) {
		device = device_of(uuid);
		answered = device && nvml.memory_info(device, &memory) == 0;
	}
	end_query(cancel);
	if (answered)
		*used_bytes = memory.used;
	return answered;
}

/* Appends "PID BYTES", and "gone" for a process that has ended and yet holds memory. */
static size_t print_process(const struct process *process, char *text, size_t room)
{
	char path[32];
	int bytes;

	snprintf(path, sizeof(path), "/proc/%u", process->pid);
	bytes = snprintf(text, room, "%u %llu%s\n", process->pid, process->used,
			 access(path, F_OK) == 0 || access("/proc/self", F_OK) != 0 ? "" : " gone");
	if (bytes > 0 && (size_t)bytes < room)
		return (size_t)bytes;
	text[0] = '\0';
	return 0;
}

static bool list_processes(const uint8_t uuid[16], struct process *list, unsigned int *count)
{
	void *device = nvml.processes ? device_of(uuid) : NULL;

	return device && nvml.processes(device, count, list) == 0;
}

bool gm_nvml_processes(const uint8_t uuid[16], unsigned own_pid, struct gm_nvml_processes *out,
		       char *others, size_t bytes)
{
	struct process list[MOST_PROCESSES];
	unsigned int count = MOST_PROCESSES, i;
	size_t used = 0;
	bool answered;
	int cancel;

	if (others)
		others[0] = '\0';
	*out = (struct gm_nvml_processes){0};
	if (!begin_query(&cancel))
		return false;
	answered = list_processes(uuid, list, &count);
	end_query(cancel);
	if (!answered)
		return false;
	out->count = count;
	for (i = 0; i < count && i < MOST_PROCESSES; i++) {
		if (list[i].used == ~0ull) /* NVML does not know */
			continue;
		if (list[i].pid == own_pid) {
			out->own = true;
			out->own_bytes += list[i].used;
			continue;
		}
		out->others_bytes += list[i].used;
		if (others)
			used += print_process(&list[i], others + used, bytes - used);
	}
	return true;
}

void gm_nvml_forget(void)
{
	gm_lock_reset(&nvml.lock);
	nvml.count = 0;
	nvml.init = gm_objects_symbol("nvmlInit_v2", NULL);
}

/*
 * A simulated NVML. Devices are those of the simulated driver; what this process uses it asks the
 * libcuda.so.1 that is loaded beside it, what others use stands in GPUSIM_OTHERS.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "sim_env.h"

typedef int nvmlReturn_t;
typedef struct nvmlDevice_st *nvmlDevice_t;
enum {
	NVML_SUCCESS = 0,
	NVML_ERROR_UNINITIALIZED = 1,
	NVML_ERROR_INVALID_ARGUMENT = 2,
	NVML_ERROR_NOT_FOUND = 6,
	NVML_ERROR_INSUFFICIENT_SIZE = 7,
};

struct memory {
	unsigned long long total, free, used;
};
struct memory_v2 {
	unsigned version;
	unsigned long long total, reserved, free, used;
};
struct process_v1 {
	unsigned pid;
	unsigned long long used;
};
struct process {
	unsigned pid;
	unsigned long long used;
	unsigned gpu_instance, compute_instance;
};

static int started;

#define NVML(name, ...)                                                                            \
	nvmlReturn_t name(__VA_ARGS__);                                                            \
	nvmlReturn_t name(__VA_ARGS__)

#define STARTED()                                                                                  \
	do {                                                                                       \
		if (!started)                                                                      \
			return NVML_ERROR_UNINITIALIZED;                                           \
	} while (0)

static int device_count(void)
{
	const char *count = getenv("GPUSIM_DEVICES");

	return count && *count ? atoi(count) : 1;
}

static nvmlDevice_t handle(int index)
{
	return (nvmlDevice_t)(intptr_t)(index + 1);
}

static int index_of(nvmlDevice_t device)
{
	intptr_t index = (intptr_t)device - 1;

	return index >= 0 && index < device_count() ? (int)index : -1;
}

/*
 * Returns the simulated driver's function, NULL without one. It is looked for once as long as that
 * library stays: dlopen reads the names of all libraries, which a program may have hidden.
 */
static void *find_in_driver(void)
{
	static void *known; /* (atomic) */
	void *found = __atomic_load_n(&known, __ATOMIC_RELAXED), *driver;
	Dl_info info;

	if (found && dladdr(found, &info) && strstr(info.dli_fname, "libcuda.so"))
		return found;
	driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	found = driver ? dlsym(driver, "gpusim_device_memory") : NULL;
	if (driver)
		dlclose(driver);
	__atomic_store_n(&known, found, __ATOMIC_RELAXED);
	return found;
}

static void usage(int index, unsigned long long *total, unsigned long long *used,
		  unsigned long long *own)
{
	int (*ask)(int, unsigned long long *, unsigned long long *, unsigned long long *) =
		(__typeof__(ask))find_in_driver();

	if (!ask || ask(index, total, used, own) != 0) {
		*total = sim_parse_size(getenv("GPUSIM_MEMORY"), 8ull << 30);
		*used = sim_parse_others(NULL, 0, NULL);
		*own = 0;
	}
}

NVML(nvmlInit_v2, void)
{
	int fd =
		open("/proc/driver/nvidia/params", O_RDONLY | O_CLOEXEC); /* a cancellation point */

	if (fd >= 0)
		close(fd);
	__atomic_add_fetch(&started, 1, __ATOMIC_SEQ_CST);
	return NVML_SUCCESS;
}

NVML(nvmlInit, void)
{
	return nvmlInit_v2();
}

NVML(nvmlInitWithFlags, unsigned int flags)
{
	(void)flags;
	return nvmlInit_v2();
}

NVML(nvmlShutdown, void)
{
	STARTED();
	__atomic_sub_fetch(&started, 1, __ATOMIC_SEQ_CST);
	return NVML_SUCCESS;
}

const char *nvmlErrorString(nvmlReturn_t error);
const char *nvmlErrorString(nvmlReturn_t error)
{
	switch (error) {
	case NVML_SUCCESS:
		return "The operation was successful";
	case NVML_ERROR_UNINITIALIZED:
		return "NVML was not first initialized with nvmlInit()";
	case NVML_ERROR_INVALID_ARGUMENT:
		return "A supplied argument is invalid";
	case NVML_ERROR_NOT_FOUND:
		return "A query to find an object was unsuccessful";
	case NVML_ERROR_INSUFFICIENT_SIZE:
		return "An input argument is not large enough";
	default:
		return "Unknown Error";
	}
}

NVML(nvmlDeviceGetCount_v2, unsigned int *count)
{
	STARTED();
	if (!count)
		return NVML_ERROR_INVALID_ARGUMENT;
	*count = (unsigned)device_count();
	return NVML_SUCCESS;
}

NVML(nvmlDeviceGetCount, unsigned int *count)
{
	return nvmlDeviceGetCount_v2(count);
}

NVML(nvmlDeviceGetHandleByIndex_v2, unsigned int index, nvmlDevice_t *device)
{
	STARTED();
	if (!device || index >= (unsigned)device_count())
		return NVML_ERROR_INVALID_ARGUMENT;
	*device = handle((int)index);
	return NVML_SUCCESS;
}

NVML(nvmlDeviceGetHandleByIndex, unsigned int index, nvmlDevice_t *device)
{
	return nvmlDeviceGetHandleByIndex_v2(index, device);
}

/* The driver's identity "gpusim-device-", 0, index, as NVML spells it. */
static void uuid_of(int index, char *out, size_t size)
{
	snprintf(out, size, "GPU-67707573-696d-2d64-6576-6963652d00%02x", (unsigned)index);
}

NVML(nvmlDeviceGetUUID, nvmlDevice_t device, char *uuid, unsigned int length)
{
	STARTED();
	if (index_of(device) < 0 || !uuid)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (length < 41)
		return NVML_ERROR_INSUFFICIENT_SIZE;
	uuid_of(index_of(device), uuid, length);
	return NVML_SUCCESS;
}

NVML(nvmlDeviceGetHandleByUUID, const char *uuid, nvmlDevice_t *device)
{
	char own[64];

	STARTED();
	if (!uuid || !device)
		return NVML_ERROR_INVALID_ARGUMENT;
	for (int i = 0; i < device_count(); i++) {
		uuid_of(i, own, sizeof(own));
		if (strcmp(own, uuid) == 0) {
			*device = handle(i);
			return NVML_SUCCESS;
		}
	}
	return NVML_ERROR_NOT_FOUND;
}

NVML(nvmlDeviceGetHandleByPciBusId_v2, const char *id, nvmlDevice_t *device)
{
	unsigned domain, bus;

	STARTED();
	if (!id || !device)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (sscanf(id, "%x:%x:", &domain, &bus) != 2 || bus < 1 || bus > (unsigned)device_count())
		return NVML_ERROR_NOT_FOUND;
	*device = handle((int)bus - 1);
	return NVML_SUCCESS;
}

NVML(nvmlDeviceGetHandleByPciBusId, const char *id, nvmlDevice_t *device)
{
	return nvmlDeviceGetHandleByPciBusId_v2(id, device);
}

NVML(nvmlDeviceGetIndex, nvmlDevice_t device, unsigned int *index)
{
	STARTED();
	if (index_of(device) < 0 || !index)
		return NVML_ERROR_INVALID_ARGUMENT;
	*index = (unsigned)index_of(device);
	return NVML_SUCCESS;
}

NVML(nvmlDeviceGetName, nvmlDevice_t device, char *name, unsigned int length)
{
	STARTED();
	if (index_of(device) < 0 || !name)
		return NVML_ERROR_INVALID_ARGUMENT;
	snprintf(name, length, "Simulated GPU");
	return NVML_SUCCESS;
}

NVML(nvmlDeviceGetMemoryInfo, nvmlDevice_t device, struct memory *out)
{
	unsigned long long own;

	STARTED();
	if (index_of(device) < 0 || !out)
		return NVML_ERROR_INVALID_ARGUMENT;
	usage(index_of(device), &out->total, &out->used, &own);
	out->free = out->total - out->used;
	return NVML_SUCCESS;
}

NVML(nvmlDeviceGetMemoryInfo_v2, nvmlDevice_t device, struct memory_v2 *out)
{
	unsigned long long own;

	STARTED();
	if (index_of(device) < 0 || !out || (out->version & 0xffffff) != sizeof(*out))
		return NVML_ERROR_INVALID_ARGUMENT;
	usage(index_of(device), &out->total, &out->used, &own);
	out->reserved = 0;
	out->free = out->total - out->used;
	return NVML_SUCCESS;
}

/* This process under its pid, or under GPUSIM_PID (0: not shown, as in some containers); others. */
static size_t processes(int index, struct process *list, size_t room)
{
	const char *pid = getenv("GPUSIM_PID");
	unsigned shown = pid && *pid ? (unsigned)strtoul(pid, NULL, 10) : (unsigned)getpid();
	unsigned long long total, used, own;
	struct sim_other others[16];
	size_t count, n = 0;

	usage(index, &total, &used, &own);
	sim_parse_others(others, 16, &count);
	if (own && shown) {
		if (n < room)
			list[n] = (struct process){shown, own, ~0u, ~0u};
		n++;
	}
	for (size_t i = 0; i < count; i++, n++)
		if (n < room)
			list[n] = (struct process){others[i].pid, others[i].bytes, ~0u, ~0u};
	return n;
}

static nvmlReturn_t answer(nvmlDevice_t device, unsigned int *count, struct process *out)
{
	const char *wait = getenv("GPUSIM_LISTING");
	size_t found;

	STARTED();
	if (wait)
		usleep((useconds_t)atoi(wait));
	if (index_of(device) < 0 || !count || (*count && !out))
		return NVML_ERROR_INVALID_ARGUMENT;
	found = processes(index_of(device), out, *count);
	if (found > *count) {
		*count = (unsigned)found;
		return NVML_ERROR_INSUFFICIENT_SIZE;
	}
	*count = (unsigned)found;
	return NVML_SUCCESS;
}

NVML(nvmlDeviceGetComputeRunningProcesses_v3, nvmlDevice_t device, unsigned int *count,
     struct process *out)
{
	return answer(device, count, out);
}

NVML(nvmlDeviceGetComputeRunningProcesses_v2, nvmlDevice_t device, unsigned int *count,
     struct process *out)
{
	return answer(device, count, out);
}

NVML(nvmlDeviceGetComputeRunningProcesses, nvmlDevice_t device, unsigned int *count,
     struct process_v1 *out)
{
	struct process list[32];
	unsigned room = count ? *count : 0;
	nvmlReturn_t rc;

	if (room > 32)
		room = 32;
	rc = answer(device, count ? &room : NULL, list);
	for (unsigned i = 0; rc == NVML_SUCCESS && i < room; i++)
		out[i] = (struct process_v1){list[i].pid, list[i].used};
	if (count)
		*count = room;
	return rc;
}

NVML(nvmlSystemGetDriverVersion, char *version, unsigned int length)
{
	STARTED();
	snprintf(version, length, "580.159");
	return NVML_SUCCESS;
}

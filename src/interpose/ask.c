/*
 * Questions put to the driver (ask.h).
 */
#include "interpose/ask.h"
#include "interpose/libraries.h"
#include "interpose/nvml.h"
#include "interpose/settings.h"
#include "store/lock.h"
#include "track/event.h"

#include <string.h>
#include <unistd.h>

#define ATTRIBUTE_DEVICE_ORDINAL 9 /* CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL */
#define POOL_RELEASE_THRESHOLD	 4
#define POOL_RESERVED_CURRENT 5 /* and the three after it: reserved high, used current, used high */

static struct {
	CUresult (*ctx_get_device)(CUdevice *);
	CUresult (*device_get_count)(int *);
	CUresult (*device_get_name)(char *, int, CUdevice);
	CUresult (*device_get_uuid)(void *, CUdevice);
	CUresult (*device_total_mem)(size_t *, CUdevice);
	CUresult (*pointer_attribute)(void *, int, CUdeviceptr);
	CUresult (*address_range)(CUdeviceptr *, size_t *, CUdeviceptr);
	CUresult (*mem_info)(size_t *, size_t *);
	CUresult (*is_capturing)(CUstream, CUstreamCaptureStatus *);
	CUresult (*is_capturing_ptsz)(CUstream, CUstreamCaptureStatus *);
	CUresult (*pool_attribute)(CUmemoryPool, int, void *);
	CUresult (*graph_attribute)(CUdevice, int, void *);
	CUresult (*default_pool)(CUmemoryPool *, CUdevice);
	CUresult (*current_pool)(CUmemoryPool *, CUdevice);
	CUresult (*primary_state)(CUdevice, unsigned int *, int *);
	CUresult (*from_green)(CUcontext *, CUgreenCtx);
} ask;

GM_HOT uint64_t gm_described_devices;
GM_HOT int gm_device_count;
GM_HOT CUresult (*gm_ctx_get_current)(CUcontext *);

static void *either(const char *name, const char *older)
{
	void *found = gm_libcuda_symbol(name);

	return found ? found : gm_libcuda_symbol(older);
}

void gm_ask_init(void)
{
	ask.ctx_get_device = gm_libcuda_symbol("cuCtxGetDevice");
	ask.device_get_count = gm_libcuda_symbol("cuDeviceGetCount");
	ask.device_get_name = gm_libcuda_symbol("cuDeviceGetName");
	ask.device_get_uuid = either("cuDeviceGetUuid_v2", "cuDeviceGetUuid");
	ask.device_total_mem = gm_libcuda_symbol("cuDeviceTotalMem_v2");
	ask.pointer_attribute = gm_libcuda_symbol("cuPointerGetAttribute");
	ask.address_range = gm_libcuda_symbol("cuMemGetAddressRange_v2");
	ask.mem_info = gm_libcuda_symbol("cuMemGetInfo_v2");
	ask.is_capturing = gm_libcuda_symbol("cuStreamIsCapturing");
	ask.is_capturing_ptsz = gm_libcuda_symbol("cuStreamIsCapturing_ptsz");
	ask.pool_attribute = gm_libcuda_symbol("cuMemPoolGetAttribute");
	ask.graph_attribute = gm_libcuda_symbol("cuDeviceGetGraphMemAttribute");
	ask.default_pool = gm_libcuda_symbol("cuDeviceGetDefaultMemPool");
	ask.current_pool = gm_libcuda_symbol("cuDeviceGetMemPool");
	gm_ctx_get_current = gm_libcuda_symbol("cuCtxGetCurrent");
	ask.primary_state = gm_libcuda_symbol("cuDevicePrimaryCtxGetState");
	ask.from_green = gm_libcuda_symbol("cuCtxFromGreenCtx");
	gm_ask_layouts_init();
}

int gm_find_device_count(void)
{
	int count = 0;

	if (ask.device_get_count && ask.device_get_count(&count) == GM_CUDA_SUCCESS && count > 0)
		gm_device_count = count;
	return gm_device_count ? gm_device_count : 1;
}

int gm_ask_current_device(void)
{
	CUdevice device = -1;

	if (!ask.ctx_get_device || ask.ctx_get_device(&device) != GM_CUDA_SUCCESS)
		return -1;
	return device;
}

int gm_ask_pointer_device(uint64_t pointer)
{
	int device = -1;

	if (!ask.pointer_attribute ||
	    ask.pointer_attribute(&device, ATTRIBUTE_DEVICE_ORDINAL, pointer) != GM_CUDA_SUCCESS)
		return -1;
	return device;
}

uint64_t gm_ask_pointer_bytes(uint64_t pointer)
{
	CUdeviceptr base;
	size_t bytes = 0;

	if (!ask.address_range || ask.address_range(&base, &bytes, pointer) != GM_CUDA_SUCCESS)
		return 0;
	return bytes;
}

bool gm_ask_mem_info(uint64_t *free_bytes, uint64_t *total_bytes)
{
	size_t free_now, total;

	if (!ask.mem_info || ask.mem_info(&free_now, &total) != GM_CUDA_SUCCESS)
		return false;
	*free_bytes = free_now;
	*total_bytes = total;
	return true;
}

bool gm_ask_capturing(uint64_t stream, bool per_thread)
{
	CUstreamCaptureStatus status = 0;
	CUresult (*is_capturing)(CUstream, CUstreamCaptureStatus *) =
		per_thread && ask.is_capturing_ptsz ? ask.is_capturing_ptsz : ask.is_capturing;

	/* The legacy stream answers an error while another is captured; that is not this stream. */
	return is_capturing && is_capturing((CUstream)(uintptr_t)stream, &status) == GM_CUDA_SUCCESS &&
	       status == 1;
}

bool gm_ask_pool_figures(uint64_t pool, struct gm_pool_figures *figures)
{
	uint64_t *const out[] = {&figures->reserved_bytes, &figures->reserved_high_bytes,
				 &figures->used_bytes, &figures->used_high_bytes};
	int i;

	for (i = 0; i < 4; i++)
		if (!ask.pool_attribute ||
		    ask.pool_attribute((CUmemoryPool)(uintptr_t)pool, POOL_RESERVED_CURRENT + i,
				       out[i]) != GM_CUDA_SUCCESS)
			return false;
	return true;
}

uint64_t gm_ask_pool_threshold(uint64_t pool)
{
	uint64_t bytes;

	if (!ask.pool_attribute ||
	    ask.pool_attribute((CUmemoryPool)(uintptr_t)pool, POOL_RELEASE_THRESHOLD, &bytes) !=
		    GM_CUDA_SUCCESS)
		return GM_NO_BYTES;
	return bytes < GM_NO_BYTES ? bytes : GM_NO_BYTES - 1;
}

bool gm_ask_graph_figures(int device, struct gm_pool_figures *figures)
{
	uint64_t *const out[] = {&figures->used_bytes, &figures->used_high_bytes,
				 &figures->reserved_bytes, &figures->reserved_high_bytes};
	int i;

	for (i = 0; i < 4; i++)
		if (!ask.graph_attribute || ask.graph_attribute(device, i, out[i]) != GM_CUDA_SUCCESS)
			return false;
	return true;
}

bool gm_ask_primary_active(int device, bool otherwise)
{
	unsigned int flags;
	int active;

	if (!ask.primary_state || ask.primary_state(device, &flags, &active) != GM_CUDA_SUCCESS)
		return otherwise;
	return active;
}

uint64_t gm_ask_green_context(uint64_t green)
{
	CUcontext context = NULL;

	if (!ask.from_green ||
	    ask.from_green(&context, (CUgreenCtx)(uintptr_t)green) != GM_CUDA_SUCCESS)
		return 0;
	return (uintptr_t)context;
}

bool gm_ask_device_used(int device, uint64_t *used_bytes)
{
	uint8_t uuid[16];

	return ask.device_get_uuid && ask.device_get_uuid(uuid, device) == GM_CUDA_SUCCESS &&
	       gm_nvml_used(uuid, used_bytes);
}

enum gm_nvml_answer gm_ask_process_used(int device, uint64_t *used_bytes)
{
	struct gm_nvml_processes processes;
	uint8_t uuid[16];

	if (!ask.device_get_uuid || ask.device_get_uuid(uuid, device) != GM_CUDA_SUCCESS ||
	    !gm_nvml_processes(uuid, (unsigned)getpid(), &processes, NULL, 0))
		return GM_NVML_SILENT;
	*used_bytes = processes.own_bytes;
	return processes.own ? GM_NVML_LISTED : GM_NVML_UNLISTED;
}

uint64_t gm_ask_default_pool(int device)
{
	CUmemoryPool pool = NULL;

	if (!ask.default_pool || ask.default_pool(&pool, device) != GM_CUDA_SUCCESS)
		return 0;
	return (uintptr_t)pool;
}

uint64_t gm_ask_current_pool(int device)
{
	CUmemoryPool pool = NULL;

	if (!ask.current_pool || ask.current_pool(&pool, device) != GM_CUDA_SUCCESS)
		return 0;
	return (uintptr_t)pool;
}

void gm_ask_device(int device)
{
	uint8_t uuid[16] = {0};
	char name[256] = "";
	size_t total = 0;

	__atomic_fetch_or(&gm_described_devices, 1ull << device, __ATOMIC_RELAXED);
	if (ask.device_get_name)
		ask.device_get_name(name, sizeof(name) - 1, device);
	if (ask.device_get_uuid)
		ask.device_get_uuid(uuid, device);
	if (ask.device_total_mem)
		ask.device_total_mem(&total, device);
	gm_track_device(device, name, uuid, total);
	gm_track_capacity(device, gm_settings.capacity_bytes);
}

void gm_ask_forget_devices(void)
{
	__atomic_store_n(&gm_described_devices, 0, __ATOMIC_RELAXED);
}

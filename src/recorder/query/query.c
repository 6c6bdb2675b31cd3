/*
 * Queries to the driver (query.h).
 */
#include "recorder/query/query.h"
#include "recorder/query/nvml.h"
#include "recorder/query/query_layout.h"
#include "recorder/state/captures.h"
#include "recorder/state/libraries.h"
#include "recorder/state/settings.h"
#include "store/lock.h"
#include "track/devices.h"
#include "track/pools.h"

#include <string.h>
#include <unistd.h>

#define ATTRIBUTE_DEVICE_ORDINAL 9 /* CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL */
#define POOL_RELEASE_THRESHOLD	 4
#define POOL_RESERVED_CURRENT	 5 /* followed by reserved high, used current, used high */

static struct {
	CUresult (*ctx_get_device)(CUdevice *);
	CUresult (*device_get_count)(int *);
	CUresult (*device_get_name)(char *, int, CUdevice);
	CUresult (*device_get_uuid)(void *, CUdevice);
	CUresult (*device_total_mem)(size_t *, CUdevice);
	CUresult (*pointer_attribute)(void *, int, CUdeviceptr);
	CUresult (*address_range)(CUdeviceptr *, size_t *, CUdeviceptr);
	CUresult (*retain_handle)(CUmemGenericAllocationHandle *, void *);
	CUresult (*release_handle)(CUmemGenericAllocationHandle);
	CUresult (*mem_info)(size_t *, size_t *);
	CUresult (*is_capturing)(CUstream, CUstreamCaptureStatus *);
	CUresult (*is_capturing_ptsz)(CUstream, CUstreamCaptureStatus *);
	CUresult (*exchange_capture_mode)(CUstreamCaptureMode *);
	CUresult (*pool_attribute)(CUmemoryPool, int, void *);
	CUresult (*graph_attribute)(CUdevice, int, void *);
	CUresult (*default_pool)(CUmemoryPool *, CUdevice);
	CUresult (*current_pool)(CUmemoryPool *, CUdevice);
	CUresult (*primary_state)(CUdevice, unsigned int *, int *);
	CUresult (*from_green)(CUcontext *, CUgreenCtx);
	bool ready;
} query;

GM_HOT uint64_t gm_described_devices;
GM_HOT int gm_device_count;
GM_HOT CUresult (*gm_ctx_get_current)(CUcontext *);

/*
 * A capture forbids calls that may conflict with it to its thread or, in its global mode, to all
 * threads: such a call fails and ends the capture. Which of the queries here are among them is not
 * documented. On an H200 (driver 580.159.04) a capture of PyTorch's with cudaMallocAsync ended
 * under the shim, most likely by the queries of free memory and of pools that follow a load of
 * code. So while a capture may be under way the thread allows itself, for the time of a query, all
 * that does not conflict of necessity [CUDA Driver API, cuThreadExchangeStreamCaptureMode].
 */
static CUstreamCaptureMode allow(void)
{
	CUstreamCaptureMode mode = GM_CAPTURE_RELAXED;

	if (gm_captures_under_way() && query.exchange_capture_mode &&
	    query.exchange_capture_mode(&mode) != GM_CUDA_SUCCESS)
		return GM_CAPTURE_RELAXED;
	return mode;
}

static CUresult forbid_again(CUstreamCaptureMode own, CUresult result)
{
	if (own != GM_CAPTURE_RELAXED)
		query.exchange_capture_mode(&own);
	return result;
}

/* Makes one query. The mode is not restored by the attribute `cleanup`, which needs an unwinder. */
#define ASK(made)                                                                                  \
	({                                                                                         \
		CUstreamCaptureMode own_mode = allow();                                            \
		forbid_again(own_mode, made);                                                      \
	})

static void *either(const char *name, const char *older)
{
	void *found = gm_libcuda_symbol(name);

	return found ? found : gm_libcuda_symbol(older);
}

void gm_query_init(void)
{
	query.ctx_get_device = gm_libcuda_symbol("cuCtxGetDevice");
	query.device_get_count = gm_libcuda_symbol("cuDeviceGetCount");
	query.device_get_name = gm_libcuda_symbol("cuDeviceGetName");
	query.device_get_uuid = either("cuDeviceGetUuid_v2", "cuDeviceGetUuid");
	query.device_total_mem = gm_libcuda_symbol("cuDeviceTotalMem_v2");
	query.pointer_attribute = gm_libcuda_symbol("cuPointerGetAttribute");
	query.address_range = gm_libcuda_symbol("cuMemGetAddressRange_v2");
	query.retain_handle = gm_libcuda_symbol("cuMemRetainAllocationHandle");
	query.release_handle = gm_libcuda_symbol("cuMemRelease");
	query.mem_info = gm_libcuda_symbol("cuMemGetInfo_v2");
	query.is_capturing = gm_libcuda_symbol("cuStreamIsCapturing");
	query.is_capturing_ptsz = gm_libcuda_symbol("cuStreamIsCapturing_ptsz");
	query.exchange_capture_mode = gm_libcuda_symbol("cuThreadExchangeStreamCaptureMode");
	query.pool_attribute = gm_libcuda_symbol("cuMemPoolGetAttribute");
	query.graph_attribute = gm_libcuda_symbol("cuDeviceGetGraphMemAttribute");
	query.default_pool = gm_libcuda_symbol("cuDeviceGetDefaultMemPool");
	query.current_pool = gm_libcuda_symbol("cuDeviceGetMemPool");
	gm_ctx_get_current = gm_libcuda_symbol("cuCtxGetCurrent");
	query.primary_state = gm_libcuda_symbol("cuDevicePrimaryCtxGetState");
	query.from_green = gm_libcuda_symbol("cuCtxFromGreenCtx");
	gm_query_layouts_init();
	query.ready = gm_libcuda_loaded();
}

bool gm_query_ready(void)
{
	return query.ready;
}

int gm_find_device_count(void)
{
	int count = 0;

	if (query.device_get_count && query.device_get_count(&count) == GM_CUDA_SUCCESS &&
	    count > 0)
		gm_device_count = count;
	return gm_device_count ? gm_device_count : 1;
}

int gm_query_current_device(void)
{
	CUdevice device = -1;

	if (!query.ctx_get_device || query.ctx_get_device(&device) != GM_CUDA_SUCCESS)
		return -1;
	return device;
}

int gm_query_pointer_device(uint64_t pointer)
{
	int device = -1;

	if (!query.pointer_attribute ||
	    ASK(query.pointer_attribute(&device, ATTRIBUTE_DEVICE_ORDINAL, pointer)) !=
		    GM_CUDA_SUCCESS)
		return -1;
	return device;
}

uint64_t gm_query_pointer_bytes(uint64_t pointer)
{
	CUdeviceptr base;
	size_t bytes = 0;

	if (!query.address_range ||
	    ASK(query.address_range(&base, &bytes, pointer)) != GM_CUDA_SUCCESS)
		return 0;
	return bytes;
}

uint64_t gm_query_mapped_handle(uint64_t address)
{
	CUmemGenericAllocationHandle handle;

	if (!query.retain_handle || !query.release_handle ||
	    ASK(query.retain_handle(&handle, (void *)(uintptr_t)address)) != GM_CUDA_SUCCESS)
		return 0;
	ASK(query.release_handle(handle));
	return handle;
}

bool gm_query_mem_info(uint64_t *free_bytes, uint64_t *total_bytes)
{
	size_t free_now, total;

	if (!query.mem_info || ASK(query.mem_info(&free_now, &total)) != GM_CUDA_SUCCESS)
		return false;
	*free_bytes = free_now;
	*total_bytes = total;
	return true;
}

bool gm_query_capturing(uint64_t stream, bool per_thread)
{
	CUstreamCaptureStatus status = 0;
	CUresult (*is_capturing)(CUstream, CUstreamCaptureStatus *) =
		per_thread && query.is_capturing_ptsz ? query.is_capturing_ptsz
						      : query.is_capturing;

	/* For the legacy stream the driver returns an error while another stream is captured. */
	return is_capturing &&
	       is_capturing((CUstream)(uintptr_t)stream, &status) == GM_CUDA_SUCCESS && status == 1;
}

/* The driver tells the mode only by exchanging it, so it is exchanged back at once. */
bool gm_query_capture_relaxed(void)
{
	CUstreamCaptureMode mode = GM_CAPTURE_RELAXED, own;

	if (!query.exchange_capture_mode || query.exchange_capture_mode(&mode) != GM_CUDA_SUCCESS)
		return false;
	own = mode;
	query.exchange_capture_mode(&mode);
	return own == GM_CAPTURE_RELAXED;
}

bool gm_query_pool_figures(uint64_t pool, struct gm_pool_figures *figures)
{
	uint64_t *const out[] = {&figures->reserved_bytes, &figures->reserved_high_bytes,
				 &figures->used_bytes, &figures->used_high_bytes};
	int i;

	for (i = 0; i < 4; i++)
		if (!query.pool_attribute ||
		    ASK(query.pool_attribute((CUmemoryPool)(uintptr_t)pool,
					     POOL_RESERVED_CURRENT + i, out[i])) != GM_CUDA_SUCCESS)
			return false;
	return true;
}

uint64_t gm_query_pool_threshold(uint64_t pool)
{
	uint64_t bytes;

	if (!query.pool_attribute ||
	    ASK(query.pool_attribute((CUmemoryPool)(uintptr_t)pool, POOL_RELEASE_THRESHOLD,
				     &bytes)) != GM_CUDA_SUCCESS)
		return GM_NO_BYTES;
	return bytes < GM_NO_BYTES ? bytes : GM_NO_BYTES - 1;
}

bool gm_query_graph_figures(int device, struct gm_pool_figures *figures)
{
	uint64_t *const out[] = {&figures->used_bytes, &figures->used_high_bytes,
				 &figures->reserved_bytes, &figures->reserved_high_bytes};
	int i;

	for (i = 0; i < 4; i++)
		if (!query.graph_attribute ||
		    ASK(query.graph_attribute(device, i, out[i])) != GM_CUDA_SUCCESS)
			return false;
	return true;
}

bool gm_query_primary_active(int device, bool otherwise)
{
	unsigned int flags;
	int active;

	if (!query.primary_state ||
	    ASK(query.primary_state(device, &flags, &active)) != GM_CUDA_SUCCESS)
		return otherwise;
	return active;
}

uint64_t gm_query_green_context(uint64_t green)
{
	CUcontext context = NULL;

	if (!query.from_green ||
	    query.from_green(&context, (CUgreenCtx)(uintptr_t)green) != GM_CUDA_SUCCESS)
		return 0;
	return (uintptr_t)context;
}

bool gm_query_device_used(int device, uint64_t *used_bytes)
{
	uint8_t uuid[16];

	return query.device_get_uuid && query.device_get_uuid(uuid, device) == GM_CUDA_SUCCESS &&
	       gm_nvml_used(uuid, used_bytes);
}

enum gm_nvml_answer gm_query_process_used(int device, uint64_t *used_bytes)
{
	struct gm_nvml_processes processes;
	uint8_t uuid[16];

	if (!query.device_get_uuid || query.device_get_uuid(uuid, device) != GM_CUDA_SUCCESS ||
	    !gm_nvml_processes(uuid, (unsigned)getpid(), &processes, NULL, 0))
		return GM_NVML_UNKNOWN;
	*used_bytes = processes.own_bytes;
	return processes.own ? GM_NVML_LISTED : GM_NVML_UNLISTED;
}

uint64_t gm_query_default_pool(int device)
{
	CUmemoryPool pool = NULL;

	if (!query.default_pool || ASK(query.default_pool(&pool, device)) != GM_CUDA_SUCCESS)
		return 0;
	return (uintptr_t)pool;
}

uint64_t gm_query_current_pool(int device)
{
	CUmemoryPool pool = NULL;

	if (!query.current_pool || ASK(query.current_pool(&pool, device)) != GM_CUDA_SUCCESS)
		return 0;
	return (uintptr_t)pool;
}

void gm_note_new_device(int device)
{
	uint8_t uuid[16] = {0};
	char name[256] = "";
	size_t total = 0;

	__atomic_fetch_or(&gm_described_devices, 1ull << device, __ATOMIC_RELAXED);
	if (query.device_get_name)
		query.device_get_name(name, sizeof(name) - 1, device);
	if (query.device_get_uuid)
		query.device_get_uuid(uuid, device);
	if (query.device_total_mem)
		query.device_total_mem(&total, device);
	gm_track_device(device, name, uuid, total);
	gm_track_capacity(device, gm_settings.capacity_bytes);
}

void gm_query_forget_devices(void)
{
	__atomic_store_n(&gm_described_devices, 0, __ATOMIC_RELAXED);
}

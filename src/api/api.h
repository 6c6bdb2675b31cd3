/*
 * The table of CUDA functions (cuda_api.def) as data: rows and roles, and what the rows'
 * expressions call. interpose/ and cupti/ make a struct gm_call (recorder/calls/call.h) of a row
 * and its arguments, and recorder/calls/role_*.c make events of it.
 */
#ifndef GM_API_API_H
#define GM_API_API_H

#include "api/cuda_abi.h"
#include "api/params.h"
#include "store/layout.h"

#include <stddef.h>
#include <stdint.h>

/* The effect of a function on memory: the rows of roles.def. */
enum gm_role {
#define GM_ROLE(name, ...) GM_ROLE_##name,
#include "api/roles.def"
	GM_ROLES
};

enum gm_function {
#define GM_RUNTIME(name, ...)	     GM_FN_##name,
#define GM_RUNTIME_UNTIL12(name, ...) GM_FN_##name##_until12,
#define GM_RUNTIME_FROM13(name, ...) GM_FN_##name,
#define GM_DRIVER(name, ...)	     GM_FN_##name,
#define GM_ROUTE(layer, name, ...)   GM_FN_##name,
#include "api/cuda_api.def"
	GM_FUNCTIONS
};

struct gm_row {
	const char *name;	/* as exported */
	uint8_t layer;		/* enum gm_layer */
	uint8_t role;		/* enum gm_role */
	uint8_t kind; /* enum gm_kind: of what is allocated, or the family that a free belongs to */
	uint8_t name_bytes;
	uint8_t majors;		/* bit 0: libcudart 11, bit 1: 12, bit 2: 13 (runtime rows) */
	uint8_t space; /* enum gm_space: of what is allocated or freed, if the call does not say */
	uint8_t per_thread;	/* its stream 0 is the calling thread's own: "_ptsz" */
};

extern const struct gm_row gm_rows[GM_FUNCTIONS] __attribute__((visibility("hidden")));

/* The bytes of a CUipcMemHandle, a CUmemFabricHandle and a CUmemPoolPtrExportData. */
#define GM_HANDLE_BYTES 64u
_Static_assert(sizeof(CUipcMemHandle) == GM_HANDLE_BYTES, "all handles have the same size");

/*
 * A number for a handle that one process gives to another, never 0: equal for equal handles, so
 * that the report can tell which process's memory another one opened. 0 for NULL. FNV-1a over the
 * handle, which is opaque. Pure.
 */
static inline uint32_t gm_handle_number(const void *handle)
{
	const unsigned char *at = handle;
	uint32_t hash = 2166136261u;

	if (!handle)
		return 0;
	for (unsigned i = 0; i < GM_HANDLE_BYTES; i++)
		hash = (hash ^ at[i]) * 16777619u;
	return hash ? hash : 1;
}

/*
 * A number for a name in a module or library. FNV-1a; the name may be NULL, as CUDA then answers.
 * Pure.
 */
static inline __attribute__((pure)) uint64_t gm_named(uint64_t owner, const char *name)
{
	uint64_t hash = 14695981039346656037ull ^ owner;

	for (; name && *name; name++)
		hash = (hash ^ (unsigned char)*name) * 1099511628211ull;
	return hash;
}

/* Bytes of a CUDA array by its descriptor, all mipmap levels; extents of 0 count as 1. */
uint64_t gm_runtime_array_bytes(const struct cudaChannelFormatDesc *desc, size_t width,
				size_t height, size_t depth, unsigned int levels);
uint64_t gm_driver_array_bytes(unsigned int format, unsigned int channels, size_t width,
			       size_t height, size_t depth, unsigned int levels);

#endif

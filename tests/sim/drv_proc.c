/*
 * cuGetProcAddress of the simulated driver: driver.def by name, version and stream flag. The
 * pointers are those of dlsym, as with the real driver.
 */
#include "drv.h"

/* Declared without types, under names of their own: only addresses are taken here. */
#define ROW(name, version, symbol, per_thread)                                                     \
	extern const char at_##symbol[] __asm__(#symbol);                                          \
	extern const char at_##per_thread[] __asm__(#per_thread) __attribute__((weak));
#include "driver.def"
#undef ROW

static const struct {
	const char *name;
	int version;
	const char *symbol, *per_thread; /* per_thread NULL where there is none */
} rows[] = {
#define ROW(name, version, symbol, per_thread) {#name, version, at_##symbol, at_##per_thread},
#include "driver.def"
#undef ROW
};

static CUdriverProcAddressQueryResult look_up(const char *name, void **out, int version,
					      cuuint64_t flags)
{
	CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	bool per_thread = flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (strcmp(rows[i].name, name) != 0)
			continue;
		if (rows[i].version <= version) {
			*out = (void *)(uintptr_t)(per_thread && rows[i].per_thread
							   ? rows[i].per_thread
							   : rows[i].symbol);
			found = CU_GET_PROC_ADDRESS_SUCCESS;
		} else if (found != CU_GET_PROC_ADDRESS_SUCCESS) {
			found = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
		}
	}
	return found;
}

/* Not finding a name is a success with a NULL and a status here, and error 500 in the first form.
 */
CUresult cuGetProcAddress_v2(const char *name, void **out, int version, cuuint64_t flags,
			     CUdriverProcAddressQueryResult *status)
{
	CUdriverProcAddressQueryResult found;

	SIM_VALUE(name && out && flags <= 3 && version >= 0 && version <= SIM_DRIVER_VERSION);
	*out = NULL;
	found = look_up(name, out, version, flags);
	if (status)
		*status = found;
	return CUDA_SUCCESS;
}

CUresult cuGetProcAddress(const char *name, void **out, int version, cuuint64_t flags)
{
	SIM_VALUE(name && out && flags <= 3 && version >= 0 && version <= SIM_DRIVER_VERSION);
	return look_up(name, out, version, flags) == CU_GET_PROC_ADDRESS_SUCCESS
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_NOT_FOUND;
}

/* The private tables of the real driver are not simulated. */
CUresult cuGetExportTable(const void **table, const CUuuid *id)
{
	SIM_VALUE(table && id);
	*table = NULL;
	return CUDA_ERROR_INVALID_VALUE;
}

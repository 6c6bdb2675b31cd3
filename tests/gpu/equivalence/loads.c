/*
 * Tells of module loads apart from gpumemtrace, of which nothing is in here: wraps the driver's
 * loading functions where a program looks them up (LD_PRELOAD) and writes each call to LOADS_OUT, a
 * JSON object a line; loads.py reads them.
 */
#include <cuda.h>

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#undef cuGetProcAddress

#define EXPORT __attribute__((visibility("default")))

static struct {
	int file;
	void *(*dlsym)(void *, const char *);
} loads = {.file = -1};

/* ---- lines ---- */

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
	char line[1024];
	va_list values;
	int bytes;

	va_start(values, format);
	bytes = vsnprintf(line, sizeof(line), format, values);
	va_end(values);
	if (bytes > 0 && bytes < (int)sizeof(line) && loads.file >= 0 &&
	    write(loads.file, line, (size_t)bytes) < 0)
		loads.file = -1;
}

static double now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static const char *thread_name(char *name)
{
	if (prctl(PR_GET_NAME, name))
		*name = '\0';
	return name;
}

static void place_of(const void *address, char *text, size_t bytes)
{
	const char *slash;
	Dl_info info;

	if (!address || !dladdr(address, &info) || !info.dli_fname) {
		snprintf(text, bytes, "?");
		return;
	}
	slash = strrchr(info.dli_fname, '/');
	snprintf(text, bytes, "%s+0x%tx", slash ? slash + 1 : info.dli_fname,
		 (const char *)address - (const char *)info.dli_fbase);
}

/* ---- images ---- */

static uint64_t end_of(uint64_t offset, uint64_t count, uint64_t bytes)
{
	return offset + count * bytes;
}

/* Bytes of a cubin, a fat binary (or the structure that points to one) or PTX. */
static size_t image_bytes(const void **image)
{
	const uint32_t *words = *image;
	const Elf64_Ehdr *elf = *image;
	uint64_t sections, segments;

	if (!words)
		return 0;
	if (words[0] == 0x466243b1) {
		memcpy(image, words + 2, sizeof(*image));
		words = *image;
	}
	if (words[0] == 0xba55ed50)
		return ((const uint64_t *)words)[1] + (words[1] >> 16);
	if (memcmp(words, ELFMAG, SELFMAG))
		return strnlen((const char *)words, 1 << 24);
	sections = end_of(elf->e_shoff, elf->e_shnum, elf->e_shentsize);
	segments = end_of(elf->e_phoff, elf->e_phnum, elf->e_phentsize);
	return sections > segments ? sections : segments;
}

static uint32_t hash_bytes(const unsigned char *bytes, size_t count)
{
	uint32_t hash = 2166136261u;

	while (count--)
		hash = (hash ^ *bytes++) * 16777619u;
	return hash;
}

/* ---- wrappers ---- */

static void say_call(const char *function, const void *image, const void *handle, int result,
		     const void *caller)
{
	bool is_image = image && !strstr(function, "File") && strcmp(function, "cuModuleLoad") != 0;
	size_t bytes = is_image ? image_bytes(&image) : 0;
	char name[16], place[256];

	place_of(caller, place, sizeof(place));
	say("{\"ms\": %.3f, \"thread\": %ld, \"name\": \"%s\", \"function\": \"%s\", "
	    "\"bytes\": %zu, \"hash\": \"%08x\", \"handle\": \"%p\", \"result\": %d, "
	    "\"caller\": \"%s\"}\n",
	    now_ms(), (long)syscall(SYS_gettid), thread_name(name), function, bytes,
	    bytes ? hash_bytes(image, bytes) : 0, handle, result, place);
}

#define WRAPPED(name, parameters, arguments, image, handle)                                        \
	static CUresult(*real_##name) parameters;                                                  \
	static CUresult wrap_##name parameters                                                     \
	{                                                                                          \
		CUresult result = real_##name arguments;                                           \
                                                                                                   \
		say_call(#name, image, (const void *)(handle), (int)result,                        \
			 __builtin_return_address(0));                                             \
		return result;                                                                     \
	}

WRAPPED(cuModuleLoad, (CUmodule * out, const char *path), (out, path), path, result ? NULL : *out)
WRAPPED(cuModuleLoadData, (CUmodule * out, const void *image), (out, image), image,
	result ? NULL : *out)
WRAPPED(cuModuleLoadDataEx,
	(CUmodule * out, const void *image, unsigned int count, CUjit_option *options,
	 void **values),
	(out, image, count, options, values), image, result ? NULL : *out)
WRAPPED(cuModuleLoadFatBinary, (CUmodule * out, const void *image), (out, image), image,
	result ? NULL : *out)
WRAPPED(cuModuleUnload, (CUmodule module), (module), NULL, module)
WRAPPED(cuLibraryLoadData,
	(CUlibrary * out, const void *image, CUjit_option *jit, void **jit_values,
	 unsigned int jit_count, CUlibraryOption *options, void **values, unsigned int count),
	(out, image, jit, jit_values, jit_count, options, values, count), image,
	result ? NULL : *out)
WRAPPED(cuLibraryLoadFromFile,
	(CUlibrary * out, const char *path, CUjit_option *jit, void **jit_values,
	 unsigned int jit_count, CUlibraryOption *options, void **values, unsigned int count),
	(out, path, jit, jit_values, jit_count, options, values, count), path, result ? NULL : *out)
WRAPPED(cuLibraryUnload, (CUlibrary library), (library), NULL, library)
WRAPPED(cuLibraryGetModule, (CUmodule * out, CUlibrary library), (out, library), NULL, library)

static void *wrap(const char *name, void *real, int version);

static CUresult (*real_cuGetProcAddress)(const char *, void **, int, cuuint64_t);
static CUresult (*real_cuGetProcAddress_v2)(const char *, void **, int, cuuint64_t,
					    CUdriverProcAddressQueryResult *);

static CUresult wrap_cuGetProcAddress(const char *name, void **found, int version, cuuint64_t flags)
{
	CUresult result = real_cuGetProcAddress(name, found, version, flags);

	if (result == CUDA_SUCCESS && found)
		*found = wrap(name, *found, version);
	return result;
}

static CUresult wrap_cuGetProcAddress_v2(const char *name, void **found, int version,
					 cuuint64_t flags, CUdriverProcAddressQueryResult *status)
{
	CUresult result = real_cuGetProcAddress_v2(name, found, version, flags, status);

	if (result == CUDA_SUCCESS && found)
		*found = wrap(name, *found, version);
	return result;
}

#define ROW(name)                                                                                  \
	{                                                                                          \
#name, (void *)wrap_##name, (void **)&real_##name                                  \
	}

static const struct {
	const char *name;
	void *wrapper;
	void **real;
} rows[] = {
	ROW(cuModuleLoad),	    ROW(cuModuleLoadData),    ROW(cuModuleLoadDataEx),
	ROW(cuModuleLoadFatBinary), ROW(cuModuleUnload),      ROW(cuLibraryLoadData),
	ROW(cuLibraryLoadFromFile), ROW(cuLibraryUnload),     ROW(cuLibraryGetModule),
	ROW(cuGetProcAddress),	    ROW(cuGetProcAddress_v2),
};

/* cuGetProcAddress gives its second version to those that ask for CUDA 12. */
static void *wrap(const char *name, void *real, int version)
{
	size_t i;

	if (!real)
		return real;
	if (version >= 12000 && !strcmp(name, "cuGetProcAddress"))
		name = "cuGetProcAddress_v2";
	for (i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		if (strcmp(rows[i].name, name) != 0 || real == rows[i].wrapper)
			continue;
		*rows[i].real = real;
		return rows[i].wrapper;
	}
	return real;
}

EXPORT void *dlsym(void *__restrict handle, const char *__restrict name)
{
	if (!loads.dlsym)
		loads.dlsym =
			(void *(*)(void *, const char *))dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
	if (strncmp(name, "cu", 2) != 0 || handle == RTLD_NEXT || handle == RTLD_DEFAULT)
		return loads.dlsym(handle, name); /* a jump, so that RTLD_NEXT means the caller */
	return wrap(name, loads.dlsym(handle, name), 0);
}

static void __attribute__((constructor)) start(void)
{
	const char *path = getenv("LOADS_OUT");

	if (path)
		loads.file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
}

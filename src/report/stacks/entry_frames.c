/*
 * Frames of CUDA's own entry points inside other objects: a program or library that links cudart
 * statically has `cudaMalloc` as a function of its own, with cudart's internals below it. Nobody
 * asked there, so a stack begins above them. The names are those of src/api/cuda_api.def.
 */
#include "report/stacks/entry_frames.h"
#include <stdlib.h>
#include <string.h>

#define MOST_INNER    12 /* frames that cudart has below one of its entry points */
#define CUDART_STATIC "libcudart_static_"

#define GM_DRIVER(name, ...)	   #name,
#define GM_RUNTIME(name, ...)	   #name,
#define GM_ROUTE(layer, name, ...) #name,

static const char *names[] = {
#include "api/cuda_api.def"
};

#define NAMES (sizeof(names) / sizeof(names[0]))

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool is_api(const char *name)
{
	static bool sorted;

	if (!sorted)
		qsort(names, NAMES, sizeof(names[0]), compare_names);
	sorted = true;
	return bsearch(&name, names, NAMES, sizeof(names[0]), compare_names) != NULL;
}

/* "cudaMalloc", and cuda_runtime.h's "cudaError cudaMalloc<float>(float**, unsigned long)". */
static bool is_entry(const char *function)
{
	char name[64];
	size_t length;

	if (!function)
		return false;
	if (is_api(function))
		return true;
	if (strncmp(function, "cudaError ", 10) == 0 || strncmp(function, "cudaError_t ", 12) == 0)
		function = strchr(function, ' ') + 1;
	length = strcspn(function, "<(");
	if (function[length] != '<' || length >= sizeof(name))
		return false;
	memcpy(name, function, length);
	name[length] = '\0';
	return is_api(name);
}

/* An object that is CUDA's runtime or driver, or the shim. */
static bool is_cuda(const struct gm_frame *frame)
{
	const char *slash = frame->module ? strrchr(frame->module, '/') : NULL;
	const char *name = slash ? slash + 1 : frame->module;

	return name &&
	       (strncmp(name, "libcudart", 9) == 0 || strncmp(name, "libcuda.so", 10) == 0 ||
		strncmp(name, "libgpumemtrace.so", 17) == 0);
}

/* True for a frame that cudart has below its entry points; without symbols, for any frame. */
static bool is_inner(const struct gm_frame *frame)
{
	return !frame->function ||
	       strncmp(frame->function, CUDART_STATIC, sizeof(CUDART_STATIC) - 1) == 0 ||
	       strncmp(frame->function, "__cudart", 8) == 0 ||
	       strncmp(frame->function, "cudart::", 8) == 0;
}

/* "cudaSetDevice" right above cudart's internals: its entry points are more than the table has. */
static bool is_above_cudart(const struct gm_frame *frame, const struct gm_frame *inner)
{
	return frame->function && strncmp(frame->function, "cuda", 4) == 0 &&
	       frame->function[4] >= 'A' && frame->function[4] <= 'Z' && inner->function &&
	       strncmp(inner->function, CUDART_STATIC, sizeof(CUDART_STATIC) - 1) == 0;
}

unsigned gm_entry_frames(const struct gm_stack *stack)
{
	const struct gm_frame *inner = NULL;
	unsigned drop = 0;

	for (unsigned i = 0; i < stack->count && i < drop + MOST_INNER; i++) {
		const struct gm_frame *frame = gm_stack_frame(stack, i);

		if (frame->python)
			break;
		if (is_cuda(frame) || is_entry(frame->function) ||
		    (inner && is_above_cudart(frame, inner)))
			drop = i + 1;
		else if (!is_inner(frame))
			break;
		inner = frame;
	}
	return drop < stack->count ? drop : 0;
}

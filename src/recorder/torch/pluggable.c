/*
 * Allocators that a program gave to PyTorch (pluggable.h). With change_current_allocator every
 * tensor is a call of the program's functions and PyTorch calls no hook, so that only what those
 * functions allocate from the driver is seen. Such an allocation is recognised by its stack, which
 * passes through CUDAPluggableAllocator::malloc in libtorch_cuda. With a MemPool, PyTorch's own
 * allocator gets its segments from such functions and divides them as usual; libc10_cuda then
 * called CUDAPluggableAllocator::malloc. The functions themselves may be in any library, and may
 * call the driver seldom.
 */
#include "recorder/torch/pluggable.h"
#include "recorder/state/libraries.h"
#include "recorder/state/settings.h"
#include "stack/elf_symbols.h"
#include "store/hot.h"

#include <string.h>

/* So many frames may lie between CUDAPluggableAllocator::malloc and libc10_cuda. */
#define CALLERS 6
#define STACKS	256u

struct range {
	uintptr_t start, end;
};

static struct {
	struct range malloc, c10;
} known;

GM_HOT struct gm_pluggable_state gm_pluggable;

/* The flags of stacks: (stack + 1) << 32 | 16 bits of (unloads + 1) << 16 | flags (atomic). */
static uint64_t flags_of[STACKS];

static bool is_library(const struct gm_object *object, const char *name)
{
	const char *base = gm_object_basename(object);
	size_t bytes = strlen(name);

	return !strncmp(base, name, bytes) && (base[bytes] == '.' || base[bytes] == '-');
}

/* The second argument, a device's index, was an int until PyTorch 2.2. */
static bool find_malloc(const struct gm_object *object, struct range *range)
{
#define CLASS "_ZN5torch4cuda22CUDAPluggableAllocator22CUDAPluggableAllocator"
	return gm_object_function(object, CLASS "6mallocEmaP11CUstream_st", &range->start,
				  &range->end) ||
	       gm_object_function(object, CLASS "6mallocEmiP11CUstream_st", &range->start,
				  &range->end);
#undef CLASS
}

static int find_libraries(const struct gm_object *object, void *data)
{
	struct range *ranges = data;

	if (is_library(object, "libc10_cuda"))
		ranges[1] = (struct range){object->start, object->end};
	else if (is_library(object, "libtorch_cuda"))
		find_malloc(object, &ranges[0]);
	return 0;
}

void gm_pluggable_find(void)
{
	uint32_t now = gm_unloads() + 1;
	struct range ranges[2] = {{0, 0}, {0, 0}};

	if (__atomic_load_n(&gm_pluggable.known, __ATOMIC_ACQUIRE) == now)
		return;
	gm_objects_each(find_libraries, ranges);
	if (!ranges[0].end)
		return;
	/* Every thread writes the same values until something is unloaded. */
	__atomic_store_n(&known.malloc.start, ranges[0].start, __ATOMIC_RELAXED);
	__atomic_store_n(&known.malloc.end, ranges[0].end, __ATOMIC_RELAXED);
	__atomic_store_n(&known.c10.start, ranges[1].start, __ATOMIC_RELAXED);
	__atomic_store_n(&known.c10.end, ranges[1].end, __ATOMIC_RELAXED);
	__atomic_store_n(&gm_pluggable.known, now, __ATOMIC_RELEASE);
}

/* `pc` is a return address: the one just past a function belongs to a call at its end. */
static bool within(const struct range *range, uintptr_t pc)
{
	return pc > __atomic_load_n(&range->start, __ATOMIC_RELAXED) &&
	       pc <= __atomic_load_n(&range->end, __ATOMIC_RELAXED);
}

static uint16_t flags_by_frames(const struct gm_raw_stack *raw)
{
	unsigned i, first;

	for (first = 0; first < raw->natives && !within(&known.malloc, raw->pc[first]); first++)
		;
	if (first == raw->natives)
		return 0;
	for (i = first + 1; i < raw->natives && i <= first + CALLERS; i++)
		if (within(&known.c10, raw->pc[i]))
			return GM_ALLOC_TORCH;
	return GM_ALLOC_PLUGGABLE;
}

/* Looks at the frames once for each stack, because equal stacks lead through the same functions. */
static uint16_t flags_of_stack(uint32_t stack, uintptr_t caller, uint32_t generation)
{
	uint64_t word = (uint64_t)(stack + 1) << 32 | (uint64_t)(generation & 0xffff) << 16;
	uint64_t *slot = &flags_of[stack % STACKS], found = __atomic_load_n(slot, __ATOMIC_RELAXED);
	struct gm_raw_stack raw;

	if (stack != GM_NONE && (found ^ word) >> 16 == 0)
		return (uint16_t)found;
	gm_stack_capture(&raw, caller, 0);
	word |= flags_by_frames(&raw);
	__atomic_store_n(slot, word, __ATOMIC_RELAXED);
	return (uint16_t)word;
}

/* Stacks lead through modules that they did not before: PyTorch may be among these. */
static void find_among_new(void)
{
	__atomic_store_n(&gm_pluggable.modules, gm_stack_modules(), __ATOMIC_RELAXED);
	if (gm_settings.torch)
		gm_pluggable_find();
}

uint16_t gm_pluggable_flags_slow(uint32_t stack, uintptr_t caller)
{
	uint32_t generation;

	if (!__atomic_load_n(&gm_pluggable.known, __ATOMIC_RELAXED))
		find_among_new();
	generation = __atomic_load_n(&gm_pluggable.known, __ATOMIC_ACQUIRE);
	return generation == gm_unloads() + 1 ? flags_of_stack(stack, caller, generation) : 0;
}

void gm_pluggable_forget(void)
{
	memset(flags_of, 0, sizeof(flags_of));
	gm_pluggable.modules = 0;
}

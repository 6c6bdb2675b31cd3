/*
 * The trace of PyTorch's own caching allocator (trace_tracker.h). Its method
 * attachAllocatorTraceTracker(std::function<void(const TraceEntry &)>) adds a function that is
 * called for every allocation and free, whether PyTorch records a history or not, with the
 * allocator's lock held [PyTorch 2.11, c10/cuda/CUDACachingAllocator.h and .cpp, record_trace()].
 *
 * The method is virtual, and the allocator's class is not exported. Where the method stands in the
 * table of virtual functions is seen in another class of the same base that libtorch_cuda exports,
 * CUDAPluggableAllocator: it is the slot that holds its own attachAllocatorTraceTracker, whose
 * mangled name also says the type of the argument and that std::function is libstdc++'s. So nothing
 * depends on a version number, and nothing of PyTorch is changed but by its own method.
 *
 * TraceEntry begins with the same members in all versions from 2.1 on. The pool follows in those
 * whose snapshot() takes a pool [PyTorch 2.8 to 2.10, c10/cuda/CUDACachingAllocator.h], and where
 * TraceEntry is in another namespace [2.11, c10/core/CachingDeviceAllocator.h]. What the entries
 * say is compared with what the hook reports of each block (track/torch_trace.h).
 *
 * The method takes the lock of each device's allocator in turn. The calling thread holds that of
 * its device, which is recursive. No block has been handed out yet, so others can only be held by
 * threads that are in their own first request, and these do not wait for this one.
 */
#include "recorder/calls/trace_tracker.h"
#include "recorder/calls/sleep.h"
#include "recorder/process/start.h"
#include "recorder/state/settings.h"
#include "recorder/state/thread.h"
#include "stack/safe_read.h"
#include "store/journal.h"
#include "track/torch_memory.h"
#include "track/torch_trace.h"

#include <string.h>

#define CLASS	  "_ZN5torch4cuda22CUDAPluggableAllocator22CUDAPluggableAllocator"
#define TABLE	  "_ZTVN5torch4cuda22CUDAPluggableAllocator22CUDAPluggableAllocatorE"
#define ALLOCATOR "_ZN3c104cuda20CUDACachingAllocator9allocatorE"
#define NATIVE	  "N3c104cuda20CUDACachingAllocator6Native22NativeCachingAllocatorE"
#define ATTACH	  CLASS "27attachAllocatorTraceTrackerESt8functionIFvRKN3c10"
/* Since PyTorch 2.11; before it, and a method that exists where entries have a pool. */
#define ATTACH_NOW	 ATTACH "22CachingDeviceAllocator10TraceEntryEEE"
#define ATTACH_BEFORE	 ATTACH "4cuda20CUDACachingAllocator10TraceEntryEEE"
#define SNAPSHOT_OF_POOL CLASS "8snapshotESt4pairIyyE"

#define HEAD_SLOTS 2u /* the offset to the object's start, and its type */
#define MOST_SLOTS 128u
#define MOST_POOLS (1ull << 31) /* pools are numbered from 1 */

/* The beginning of c10::CachingDeviceAllocator::TraceEntry. */
struct trace_entry {
	int32_t action;
	int8_t device;
	uint64_t address;
	void *context[2]; /* std::shared_ptr */
	uint64_t stream, bytes;
	uint64_t pool[2]; /* of a graph, or of the program */
};

enum trace_action { TRACE_ALLOC, TRACE_FREE_REQUESTED, TRACE_FREE_COMPLETED };

/* ---- std::function of libstdc++ ---- */

union functor {
	void *pointer[2];
};

enum functor_operation { FUNCTOR_TYPE, FUNCTOR_POINTER, FUNCTOR_CLONE, FUNCTOR_DESTROY };

struct function {
	union functor functor;
	bool (*manage)(union functor *to, const union functor *from, int operation);
	void (*invoke)(const union functor *functor, const struct trace_entry *entry);
};

static bool manage(union functor *to, const union functor *from, int operation)
{
	if (operation == FUNCTOR_TYPE)
		to->pointer[0] = NULL;
	else if (operation == FUNCTOR_POINTER)
		to->pointer[0] = (void *)(uintptr_t)from;
	else if (operation == FUNCTOR_CLONE)
		*to = *from;
	return false;
}

/* ---- the entries ---- */

static void end_free(const struct trace_entry *entry)
{
	if (gm_torch_trace_done(entry->address) || gm_idle() || !gm_enter_tracker())
		return;
	if (gm_recording())
		gm_torch_trace_waited(entry->address, entry->device);
	gm_leave_tracker();
}

/* A request whose pool cannot be one does not fit its block. */
static void begin_block(const struct trace_entry *entry)
{
	const uint64_t *pool = entry->pool;
	bool fits = pool[0] < MOST_POOLS && pool[1] < MOST_POOLS && !(pool[0] && pool[1]);
	const struct gm_torch_request request = {
		.block = fits ? entry->address : 0,
		.bytes = entry->bytes,
		.stream = entry->stream,
		.pool = pool[0]	  ? 2 * pool[0]
			: pool[1] ? 2 * pool[1] + 1
				  : 0,
	};

	gm_torch_trace_request(&request);
}

static void on_entry(const union functor *functor, const struct trace_entry *entry)
{
	(void)functor;
	if (!gm_torch_traced())
		return;
	if (entry->action == TRACE_ALLOC)
		begin_block(entry);
	else if (entry->action == TRACE_FREE_REQUESTED)
		gm_torch_trace_free(entry->address);
	else if (entry->action == TRACE_FREE_COMPLETED)
		end_free(entry);
}

/* ---- the allocator ---- */

static uintptr_t word_at(uintptr_t address)
{
	uintptr_t word;

	return address && gm_safe_read(&word, address, sizeof(word)) ? word : 0;
}

static bool is_code_of(const struct gm_object *object, uintptr_t address)
{
	for (unsigned i = 0; i < object->phdrs; i++) {
		const ElfW(Phdr) *phdr = &object->phdr[i];
		uintptr_t start = object->base + phdr->p_vaddr;

		if (phdr->p_type == PT_LOAD && phdr->p_flags & PF_X && address >= start &&
		    address - start < phdr->p_memsz)
			return true;
	}
	return false;
}

/* The number of the method's slot, from the first of virtual functions; MOST_SLOTS if not found. */
static unsigned find_slot(void)
{
	static const char *const names[] = {ATTACH_NOW, ATTACH_BEFORE, SNAPSHOT_OF_POOL};
	void *found[3] = {NULL, NULL, NULL};
	struct gm_object torch;
	uintptr_t table = (uintptr_t)gm_objects_symbol(TABLE, &torch), method, wanted;
	unsigned slot;

	if (!table)
		return MOST_SLOTS;
	gm_object_symbols(&torch, names, found, 3);
	wanted = (uintptr_t)(found[0] ? found[0] : found[2] ? found[1] : NULL);
	if (!is_code_of(&torch, wanted))
		return MOST_SLOTS;
	for (slot = 0; slot < MOST_SLOTS; slot++) {
		method = word_at(table + (HEAD_SLOTS + slot) * sizeof(method));
		if (method == wanted || !method)
			break;
	}
	return method == wanted ? slot : MOST_SLOTS;
}

/* True for the table of the caching allocator's own class, by the name that its type has. */
static bool is_native(uintptr_t table)
{
	uintptr_t type = word_at(table - sizeof(table));
	char name[sizeof(NATIVE)];

	return !word_at(table - HEAD_SLOTS * sizeof(table)) && type &&
	       gm_safe_read(name, word_at(type + sizeof(type)), sizeof(name)) &&
	       memcmp(name, NATIVE, sizeof(name)) == 0;
}

static void attach(const struct gm_object *c10)
{
	uintptr_t self = word_at((uintptr_t)gm_object_symbol(c10, ALLOCATOR, NULL));
	uintptr_t table = word_at(self), method;
	struct function function = {.manage = manage, .invoke = on_entry};
	unsigned slot;

	if (!table || !is_native(table))
		return;
	slot = find_slot();
	method = slot < MOST_SLOTS ? word_at(table + slot * sizeof(method)) : 0;
	if (!is_code_of(c10, method))
		return;
	gm_torch_trace_start();
	((void (*)(uintptr_t, struct function *))method)(self, &function);
}

/* True if all calls of the allocator so far were recorded, and it has handed out no block. */
static bool from_the_start(void)
{
	return !gm_settings.attached && !gm_settings.asleep && !gm_file->periods &&
	       !gm_track_torch_seen();
}

void gm_trace_tracker_attach(const struct gm_object *c10)
{
	static bool tried;

	if (gm_journal_on && from_the_start() && !gm_settings.sample_bytes &&
	    !__atomic_exchange_n(&tried, true, __ATOMIC_ACQ_REL))
		attach(c10);
}

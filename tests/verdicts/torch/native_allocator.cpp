/*
 * The allocator object that the stand-in for libc10_cuda.so exports, and its trace: each tracker is
 * called for each entry, with the allocator's lock held.
 */
#include "cuda_allocator.h"
#include <cstdlib>
#include <vector>

extern "C" {
#include "caching.h"
}

namespace c10
{
namespace cuda
{
namespace CUDACachingAllocator
{
namespace Native
{

class NativeCachingAllocator : public CUDAAllocator
{
      public:
	std::vector<AllocatorTraceTracker> trackers;

	void *raw_alloc(std::size_t) override
	{
		std::abort();
	}
	SnapshotInfo snapshot(MempoolId_t, bool) override
	{
		return {};
	}
	void attachAllocatorTraceTracker(AllocatorTraceTracker tracker) override
	{
		trackers.emplace_back(std::move(tracker));
	}
	std::string name() override
	{
		return "native";
	}
};

static NativeCachingAllocator native;

} // namespace Native

/* An allocator of a program's, as torch.cuda.memory.change_current_allocator() puts there. */
class OtherAllocator : public CUDAAllocator
{
      public:
	void *raw_alloc(std::size_t) override
	{
		std::abort();
	}
	SnapshotInfo snapshot(MempoolId_t, bool) override
	{
		std::abort();
	}
	void attachAllocatorTraceTracker(AllocatorTraceTracker) override
	{
		std::abort();
	}
	std::string name() override
	{
		return "other";
	}
};

static OtherAllocator other;

std::atomic<CUDAAllocator *> allocator{&Native::native};

} // namespace CUDACachingAllocator
} // namespace cuda
} // namespace c10

using namespace c10::cuda::CUDACachingAllocator;

static unsigned faults;

void standin_trace_fault(unsigned entries)
{
	faults = entries;
}

void standin_change_allocator(void)
{
	allocator = &other;
}

unsigned standin_trackers(void)
{
	return (unsigned)Native::native.trackers.size();
}

/* A graph's pool has the first number. */
void standin_trace(const struct standin_entry *entry)
{
	const TraceEntry traced = {
		(int)entry->action < STANDIN_OOM ? (int)entry->action : 8,
		(std::int8_t)entry->device,
		entry->address,
		nullptr,
		reinterpret_cast<void *>(static_cast<std::uintptr_t>(entry->stream) * 4096),
		entry->bytes,
		{static_cast<unsigned long long>(entry->pool), 0},
		entry->time_us,
		"N/A",
		""};

	if (entry->action == STANDIN_ALLOC && faults && !--faults)
		return;
	for (const auto &tracker : Native::native.trackers)
		tracker(traced);
}

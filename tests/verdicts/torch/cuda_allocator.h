/*
 * The classes of PyTorch's allocator as a program that is compiled against PyTorch sees them: the
 * trace of the allocator, and virtual functions of which attachAllocatorTraceTracker is one. The
 * names are PyTorch's, as they are in the libraries' symbols.
 */
#ifndef TESTS_VERDICTS_CUDA_ALLOCATOR_H
#define TESTS_VERDICTS_CUDA_ALLOCATOR_H

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace c10
{
using MempoolId_t = std::pair<unsigned long long, unsigned long long>;

namespace CachingDeviceAllocator
{
struct TraceEntry {
	int action_;
	std::int8_t device_;
	std::size_t addr_;
	std::shared_ptr<int> context_;
	void *stream_;
	std::size_t size_;
	MempoolId_t mempool_;
	std::uint64_t time_;
	std::string compile_context_, user_metadata_;
};

using AllocatorTraceTracker = std::function<void(const TraceEntry &)>;
} // namespace CachingDeviceAllocator

namespace cuda
{
namespace CUDACachingAllocator
{
using CachingDeviceAllocator::AllocatorTraceTracker;
using CachingDeviceAllocator::TraceEntry;

struct SnapshotInfo {
	std::uint64_t segments[4];
};

class CUDAAllocator
{
      public:
	virtual ~CUDAAllocator() = default;
	virtual void *raw_alloc(std::size_t bytes) = 0;
	virtual SnapshotInfo snapshot(MempoolId_t pool, bool include_traces) = 0;
	virtual void attachAllocatorTraceTracker(AllocatorTraceTracker tracker) = 0;
	virtual std::string name() = 0;
};

__attribute__((visibility("default"))) extern std::atomic<CUDAAllocator *> allocator;

} // namespace CUDACachingAllocator
} // namespace cuda
} // namespace c10

#endif

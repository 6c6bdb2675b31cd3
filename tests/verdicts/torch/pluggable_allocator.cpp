/*
 * CUDAPluggableAllocator of the stand-in for PyTorch's libtorch_cuda.so: a class of the same base
 * as the caching allocator, whose virtual functions are exported by their names.
 */
#include "cuda_allocator.h"
#include <cstdlib>

namespace torch
{
namespace cuda
{
namespace CUDAPluggableAllocator
{

struct CUDAPluggableAllocator : public c10::cuda::CUDACachingAllocator::CUDAAllocator {
	void *raw_alloc(std::size_t bytes) override;
	c10::cuda::CUDACachingAllocator::SnapshotInfo snapshot(c10::MempoolId_t pool,
							       bool include_traces) override;
	void attachAllocatorTraceTracker(
		c10::cuda::CUDACachingAllocator::AllocatorTraceTracker tracker) override;
	std::string name() override;
};

void *CUDAPluggableAllocator::raw_alloc(std::size_t)
{
	std::abort();
}

c10::cuda::CUDACachingAllocator::SnapshotInfo CUDAPluggableAllocator::snapshot(c10::MempoolId_t,
									       bool)
{
	std::abort();
}

void CUDAPluggableAllocator::attachAllocatorTraceTracker(
	c10::cuda::CUDACachingAllocator::AllocatorTraceTracker)
{
	std::abort();
}

std::string CUDAPluggableAllocator::name()
{
	return "pluggable";
}

} // namespace CUDAPluggableAllocator
} // namespace cuda
} // namespace torch

/*
 * A preload whose cudaMalloc throws when asked for 666 bytes, and a call-through otherwise.
 */
#include <cstddef>
#include <dlfcn.h>
#include <new>

extern "C" int cudaMalloc(void **memory, std::size_t bytes)
{
	using function = int (*)(void **, std::size_t);

	if (bytes == 666)
		throw std::bad_alloc();
	return reinterpret_cast<function>(dlsym(RTLD_NEXT, "cudaMalloc"))(memory, bytes);
}

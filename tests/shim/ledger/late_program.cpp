/*
 * A program that works while it ends: handlers registered before and after its first call of CUDA,
 * a static object's destructor, its library's (late_library.c). Each frees a block and allocates
 * one.
 */
#include "late.h"

#include <cstdlib>

namespace
{

struct Holder {
	~Holder()
	{
		release(STATIC_OBJECT);
		take(16384);
	}
} holder;

void before_unloading()
{
	release(FIRST_HANDLER);
	make_stream();
	take(3ul << 20);
}

void after_unloading()
{
	release(OTHER_HANDLER);
	make_stream();
	take(32768);
}

} // namespace

int main()
{
	std::atexit(after_unloading);
	take_blocks();
	std::atexit(before_unloading);
	return 0;
}

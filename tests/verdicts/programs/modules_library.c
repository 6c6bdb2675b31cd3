/*
 * A library that loads a module for each new request and keeps it. Built under the name of
 * cuBLASLt, whose modules are its own and finite, and as a compiler of formulas, whose modules have
 * no end.
 */
#include "cuda_calls.h"

int LOAD(void);

__attribute__((noinline)) int LOAD(void)
{
	static const char image[] = ".version 7.0\n.target sm_80\n.entry scale(){}";
	CUmodule module;
	int error = cuModuleLoadData(&module, image);

	__asm__ volatile("" ::: "memory"); /* no tail call */
	return error;
}

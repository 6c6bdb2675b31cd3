/*
 * The class of an object of C++ by its vtable.
 */
#ifndef GM_HOLDERS_CPP_CLASS_H
#define GM_HOLDERS_CPP_CLASS_H

#include "holders/process_memory.h"

/*
 * The class whose objects begin with the word `vtable`, with the file name of the library that has
 * it: "StorageImpl (libc10.so)". False if the word is no vtable of a class with RTTI.
 */
bool gm_cpp_class(struct gm_memory *memory, uint64_t vtable, char *text, size_t bytes);

/* The last part of a nested name: "N5torch8autograd9generated12ExpBackward0E" is ExpBackward0. */
void gm_cpp_last_part(const char *mangled, char *text, size_t bytes);

#endif

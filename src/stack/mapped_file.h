/*
 * The file that an address of this process is mapped from.
 */
#ifndef GM_STACK_MAPPED_FILE_H
#define GM_STACK_MAPPED_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Writes the path to `path`, by /proc/self/maps (proc_pid_maps(5)). False if the address is not
 * mapped from a file, or the path has `bytes` bytes or more. Unlike /proc/self/exe this is right
 * for a program that was started by the loader (ld-linux.so PROGRAM). Makes system calls only, so
 * it is safe in signal handlers and after a fork.
 */
bool gm_mapped_file(uintptr_t address, char *path, size_t bytes);

#endif

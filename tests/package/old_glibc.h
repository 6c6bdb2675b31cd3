/*
 * Put before every source of the simulated driver for the test on an old system: names that moved
 * into libc with glibc 2.32 to 2.34 under the versions they had in libpthread.
 */
#include "interpose/glibc_floor.h"

__asm__(".symver pthread_create,pthread_create@GLIBC_2.2.5");
__asm__(".symver pthread_sigmask,pthread_sigmask@GLIBC_2.2.5");
__asm__(".symver pthread_mutexattr_init,pthread_mutexattr_init@GLIBC_2.2.5");
__asm__(".symver pthread_mutexattr_settype,pthread_mutexattr_settype@GLIBC_2.2.5");

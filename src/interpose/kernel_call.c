/*
 * System calls past the C library's syscall() (kernel_call.h): the arguments go to where the kernel
 * takes them [syscall(2), architecture calling conventions].
 */
#include "interpose/kernel_call.h"

#include <errno.h>
#include <stdarg.h>

#define MOST_ERROR 4095

long gm_kernel_call(long number, ...)
{
	long a[6], result;
	va_list arguments;

	va_start(arguments, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(arguments, long); /* the kernel ignores those that it does not take */
	va_end(arguments);
#if defined(__x86_64__)
	register long r10 __asm__("r10") = a[3];
	register long r8 __asm__("r8") = a[4];
	register long r9 __asm__("r9") = a[5];

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a[0]), "S"(a[1]), "d"(a[2]), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
#elif defined(__aarch64__)
	register long x8 __asm__("x8") = number;
	register long x0 __asm__("x0") = a[0];
	register long x1 __asm__("x1") = a[1];
	register long x2 __asm__("x2") = a[2];
	register long x3 __asm__("x3") = a[3];
	register long x4 __asm__("x4") = a[4];
	register long x5 __asm__("x5") = a[5];

	__asm__ volatile("svc #0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory");
	result = x0;
#else
#error "write gm_kernel_call for this processor here"
#endif
	if (result >= 0 || result < -MOST_ERROR)
		return result;
	errno = (int)-result;
	return -1;
}

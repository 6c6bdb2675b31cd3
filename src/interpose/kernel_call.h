/*
 * Put before every source of the shim: its direct system calls do not go through the C library's
 * syscall(), which other preloads define. A wrapper of theirs may take a lock that its thread holds
 * already, because the library called dlsym or dlclose, and so the shim, under it (libuid_wrapper).
 */
#if !defined(GM_INTERPOSE_KERNEL_CALL_H) && !defined(__ASSEMBLER__)
#define GM_INTERPOSE_KERNEL_CALL_H

/*
 * As syscall(2): makes the system call with up to six arguments. Returns its result, or -1 and sets
 * errno. Any thread, any context.
 */
long gm_kernel_call(long number, ...) __attribute__((visibility("hidden")));

#define syscall(...) gm_kernel_call(__VA_ARGS__)

#endif

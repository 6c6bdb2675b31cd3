/*
 * The functions of the C library that the shim stands in front of, as callers would reach them
 * without it. They are found when the shim is loaded: jumps happen in signal handlers, and in the
 * child of a fork another thread of the parent's may have held the loader's lock when exec or _exit
 * is called.
 */
#ifndef GM_RECORDER_LIBC_FUNCTIONS_H
#define GM_RECORDER_LIBC_FUNCTIONS_H

#define GM_LIBC_FUNCTION_LIST(X)                                                                   \
	X(dlsym) X(dlclose) X(_exit) X(_Exit) X(quick_exit) X(execve) X(execv) X(execvp)           \
	X(execvpe) X(fexecve) X(execveat) X(longjmp) X(_longjmp) X(siglongjmp) X(__longjmp_chk)

enum gm_libc_function {
#define GM_LIBC_FUNCTION(name) GM_LIBC_##name,
	GM_LIBC_FUNCTION_LIST(GM_LIBC_FUNCTION)
#undef GM_LIBC_FUNCTION
	GM_LIBC_FUNCTIONS
};

/*
 * Finds all of them, and the C library's own clock for gm_clock_source. Called once; single thread.
 */
void gm_libc_init(void);

/* The function if it was found so far, else NULL. Async-signal-safe. */
void *gm_libc_known(enum gm_libc_function function);

/*
 * The function, which is looked up if it is not known; NULL where the C library has none. Any
 * thread.
 */
void *gm_libc_find(enum gm_libc_function function);

#endif

/*
 * Steps that the child of a fork() needs before any code of the program's runs in it.
 */
#ifndef GM_RECORDER_FORK_H
#define GM_RECORDER_FORK_H

/* Registers the handlers of fork(). Called once, after gm_fork_page_init(). */
void gm_fork_init(void);

#endif

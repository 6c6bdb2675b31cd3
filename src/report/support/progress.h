/*
 * A line of progress on stderr for work that takes longer than a second, only on a terminal.
 */
#ifndef GM_REPORT_SUPPORT_PROGRESS_H
#define GM_REPORT_SUPPORT_PROGRESS_H

/* Tells that `done` of `all` steps of `what` are done. Cheap; may be called often. */
void gm_progress(const char *what, unsigned long done, unsigned long all);

/* Wipes the line, if there is one. */
void gm_progress_end(void);

#endif

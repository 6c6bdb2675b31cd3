/*
 * Messages on stderr.
 */
#ifndef GM_RECORDER_LOG_H
#define GM_RECORDER_LOG_H

enum gm_log { GM_LOG_ERROR, GM_LOG_WARN, GM_LOG_INFO, GM_LOG_DEBUG };

/* The least urgent level that is printed: GPUMEMTRACE_LOG. */
extern enum gm_log gm_log_level __attribute__((visibility("hidden")));

/*
 * Remembers what stderr is, so that a file that the program opens in its place is not written to.
 */
void gm_log_init(void);

/*
 * Prints a line that begins with "gpumemtrace: ", if the level is in force. The line is at most 1
 * KiB long. Takes at most a second where nobody reads stderr. No malloc; errno and pending signals
 * stay as they were.
 */
void gm_log(enum gm_log level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif

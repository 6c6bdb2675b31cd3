/*
 * From a process to its output file, by what it has mapped.
 */
#ifndef GM_REPORT_OPEN_FIND_PROCESS_H
#define GM_REPORT_OPEN_FIND_PROCESS_H

#include <stddef.h>

/*
 * The path of the output file that process `pid` has mapped, as seen from here (free it). NULL when
 * there is none; `error` then holds a sentence.
 */
char *gm_find_process_file(int pid, char *error, size_t error_bytes);

#endif

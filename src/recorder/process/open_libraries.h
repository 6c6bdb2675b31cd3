/*
 * The libraries that the recorder uses and does not link.
 */
#ifndef GM_RECORDER_OPEN_LIBRARIES_H
#define GM_RECORDER_OPEN_LIBRARIES_H

/*
 * libcuda was found: finds its functions for queries, and opens NVML and the unwinder. A driver
 * look-up or call of the program's is under way and no lock is held, so that dlopen may wait.
 */
void gm_open_libraries(void);

#endif

/*
 * GPUMEMTRACE_MARK: marks at the ends of NVTX ranges of a name (nvtx.c).
 */
#ifndef GM_INTERPOSE_NVTX_H
#define GM_INTERPOSE_NVTX_H

/*
 * In the constructor: makes this library NVTX's injection, unless GPUMEMTRACE_MARK is unset or another
 * injection is set already. Changes the environment, so call it while there is one thread.
 */
void gm_nvtx_load(void);

/* The file was opened: says if another injection is in the way. */
void gm_nvtx_start(void);

#endif

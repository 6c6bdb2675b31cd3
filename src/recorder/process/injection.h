/*
 * Having NVTX and libcuda open this library, by the environment variables that they read at their
 * first use. Settings of other tools are left alone.
 */
#ifndef GM_RECORDER_INJECTION_H
#define GM_RECORDER_INJECTION_H

/* libcuda's variable: it calls InitializeInjection of the library named by it from cuInit. */
#define GM_CUDA_INJECTION "CUDA_INJECTION64_PATH"

/*
 * Sets the variables as the settings want them. Changes the environment, so it is called from the
 * constructor, while there is one thread.
 */
void gm_injection_init(void);

/* The file was opened: warns if another tool's NVTX injection is in the way of GPUMEMTRACE_MARK. */
void gm_injection_report(void);

#endif

/*
 * CUDA's error codes by name, and what it means when an allocation call answers one.
 */
#ifndef GM_REPORT_DOC_CUDA_ERRORS_H
#define GM_REPORT_DOC_CUDA_ERRORS_H

/*
 * Name of an error as the layer of function `api` spells it (NULL: the driver); NULL if not known.
 */
const char *gm_cuda_error_name(int error, const char *api);

/*
 * Returns the usual reason for this error of an allocating call and its remedy: a sentence without
 * a full stop.
 */
const char *gm_cuda_error_why(int error);

#endif

/*
 * The state that the shim keeps of a thread (thread_state.h).
 */
#include "store/thread_state.h"

__thread struct gm_thread gm_thread __attribute__((tls_model("initial-exec")));

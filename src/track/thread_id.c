/*
 * The id of the calling thread.
 */
#include "track/thread_id.h"

#include <sys/syscall.h>
#include <unistd.h>

__thread uint32_t gm_thread_id __attribute__((tls_model("initial-exec")));

uint32_t gm_ask_thread_id(void)
{
	gm_thread_id = (uint32_t)syscall(SYS_gettid);
	return gm_thread_id;
}

/*
 * The id of the calling thread.
 */
#include "track/thread_id.h"

#include <sys/syscall.h>
#include <unistd.h>

uint32_t gm_ask_thread_id(void)
{
	gm_thread.id = (uint32_t)syscall(SYS_gettid);
	return gm_thread.id;
}

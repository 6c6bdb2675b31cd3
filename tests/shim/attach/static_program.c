/*
 * Does nothing: as a static program, which has no loader, and as `pausing`, in which nothing leads
 * to the shim.
 */
#include <unistd.h>

int main(void)
{
	for (;;)
		pause();
}

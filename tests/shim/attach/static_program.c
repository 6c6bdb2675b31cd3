/* A static program, which has no loader. */
#include <unistd.h>

int main(void)
{
	for (;;)
		pause();
}

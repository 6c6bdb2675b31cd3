/* Makes one cuBLAS handle, or with an argument that many, and never destroys them. */
#include <stdlib.h>

int cublasCreate_v2(void **handle);

int main(int argc, char **argv)
{
	int count = argc > 1 ? atoi(argv[1]) : 1;
	void *handle;

	while (count--)
		if (cublasCreate_v2(&handle))
			return 2;
	return 0;
}

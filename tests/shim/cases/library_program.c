/* Makes one cuBLAS handle, or with an argument that many, one a step, and never destroys them. */
#include <stdlib.h>

int cublasCreate_v2(void **handle);
int cudaMalloc(void **memory, size_t bytes);
int cudaFree(void *memory);

int main(int argc, char **argv)
{
	int count = argc > 1 ? atoi(argv[1]) : 1;
	void *handle, *scratch;

	while (count--)
		if (cublasCreate_v2(&handle) || cudaMalloc(&scratch, 4096) || cudaFree(scratch))
			return 2;
	return 0;
}

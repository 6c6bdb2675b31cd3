/*
 * Allocates and frees for ever in several threads and, before each call returns to the next, writes
 * into a shared file how many of each thread's calls had returned. Killed from outside at any
 * moment: what the file says had returned must be in the report.
 */
#include "cuda_calls.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define THREADS 4
#define KEPT	64

/* One thread's books, in memory that outlives the process. */
struct book {
	uint64_t allocations; /* that had returned */
	uint64_t frees;	      /* that had returned */
	uint64_t begun;	      /* calls begun, returned or not */
	uint64_t padding[5];
};

static struct book *books;

static void *work(void *argument)
{
	struct book *book = argument;
	void *kept[KEPT] = {0};
	size_t bytes = 256 * (size_t)(1 + (book - books));
	unsigned i;

	for (i = 0;; i = (i + 1) % KEPT) {
		book->begun++;
		if (kept[i]) {
			if (cudaFree(kept[i]))
				abort();
			__atomic_fetch_add(&book->frees, 1, __ATOMIC_SEQ_CST);
			kept[i] = NULL;
			continue;
		}
		if (cudaMalloc(&kept[i], bytes))
			abort();
		__atomic_fetch_add(&book->allocations, 1, __ATOMIC_SEQ_CST);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	int fd = open(argv[argc - 1], O_RDWR | O_CREAT, 0600), i;
	pthread_t thread;

	if (fd < 0 || ftruncate(fd, 4096) < 0)
		return 2;
	books = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (books == MAP_FAILED)
		return 2;
	for (i = 0; i < THREADS; i++)
		if (pthread_create(&thread, NULL, work, &books[i]))
			return 2;
	pause();
	return 0;
}

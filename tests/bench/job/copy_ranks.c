/*
 * Makes the files of a large job from those of a small one: copy_ranks RANKS FOLDER FILE... writes
 * FOLDER/NODE/rankN.gmt, each a copy of the files in turn with rank, pid, world size and start of
 * its own. Blocks of zeros become holes.
 */
#include "store/layout.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RANKS_OF_A_NODE 8
#define BLOCK		4096

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static unsigned char *read_whole(const char *path, size_t *bytes)
{
	FILE *file = fopen(path, "r");
	unsigned char *content;
	struct stat st;

	if (!file || fstat(fileno(file), &st) != 0)
		die(path);
	content = malloc((size_t)st.st_size);
	*bytes = (size_t)st.st_size;
	if (!content || fread(content, 1, *bytes, file) != *bytes ||
	    *bytes < sizeof(struct gm_header))
		die(path);
	fclose(file);
	return content;
}

static void write_sparse(const char *path, const unsigned char *content, size_t bytes)
{
	static const unsigned char zeros[BLOCK];
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0 || ftruncate(fd, (off_t)bytes) != 0)
		die(path);
	for (size_t at = 0; at < bytes; at += BLOCK) {
		size_t part = bytes - at < BLOCK ? bytes - at : BLOCK;

		if (memcmp(content + at, zeros, part) != 0 &&
		    pwrite(fd, content + at, part, (off_t)at) != (ssize_t)part)
			die(path);
	}
	if (close(fd) != 0)
		die(path);
}

int main(int argc, char **argv)
{
	unsigned ranks = argc > 3 ? (unsigned)atoi(argv[1]) : 0;
	char path[4096];

	if (!ranks) {
		fprintf(stderr, "copy_ranks RANKS FOLDER FILE...\n");
		return 2;
	}
	mkdir(argv[2], 0700);
	for (unsigned rank = 0; rank < ranks; rank++) {
		size_t bytes;
		unsigned char *content = read_whole(argv[3 + rank % (unsigned)(argc - 3)], &bytes);
		struct gm_header *header = (struct gm_header *)content;

		header->rank = (int32_t)rank;
		header->local_rank = (int32_t)(rank % RANKS_OF_A_NODE);
		header->world_size = (int32_t)ranks;
		header->pid = 100000 + rank;
		header->started_realtime_ns += rank * 1000;
		snprintf(path, sizeof(path), "%s/%u", argv[2], rank / RANKS_OF_A_NODE);
		mkdir(path, 0700);
		snprintf(path, sizeof(path), "%s/%u/rank%u.gmt", argv[2], rank / RANKS_OF_A_NODE,
			 rank);
		write_sparse(path, content, bytes);
		free(content);
	}
	return 0;
}

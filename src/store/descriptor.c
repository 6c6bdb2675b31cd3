/*
 * Descriptors of 3 and above (descriptor.h). The C library's functions are used, so that a preload
 * that translates paths sees all names alike, but not as points where a thread may be cancelled
 * (pthreads(7)).
 */
#include "store/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

static bool low_numbers_are_used(void)
{
	int fd;

	for (fd = 0; fd < GM_FIRST_OWN_DESCRIPTOR; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			return false;
	return true;
}

void gm_low_numbers_take(struct gm_low_numbers *numbers)
{
	int fd, cancel;

	*numbers = (struct gm_low_numbers){{false}};
	if (low_numbers_are_used())
		return;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	while ((fd = open("/", O_PATH | O_CLOEXEC)) >= 0 && fd < GM_FIRST_OWN_DESCRIPTOR)
		numbers->taken[fd] = true;
	if (fd >= GM_FIRST_OWN_DESCRIPTOR)
		close(fd);
	pthread_setcancelstate(cancel, NULL);
}

void gm_low_numbers_give_back(const struct gm_low_numbers *numbers)
{
	int fd, cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	for (fd = 0; fd < GM_FIRST_OWN_DESCRIPTOR; fd++)
		if (numbers->taken[fd])
			close(fd);
	pthread_setcancelstate(cancel, NULL);
}

static int open_high(const char *path, int flags, mode_t mode)
{
	struct gm_low_numbers numbers;
	int fd, error = 0;

	gm_low_numbers_take(&numbers);
	fd = open(path, flags | O_CLOEXEC, mode);
	if (fd < 0)
		error = -errno;
	gm_low_numbers_give_back(&numbers);
	if (fd < 0)
		return error;
	if (fd < GM_FIRST_OWN_DESCRIPTOR) { /* another thread closed a low number in between */
		int high = fcntl(fd, F_DUPFD_CLOEXEC, GM_FIRST_OWN_DESCRIPTOR);

		error = -errno;
		close(fd);
		fd = high < 0 ? error : high;
	}
	return fd;
}

int gm_open(const char *path, int flags, mode_t mode)
{
	int fd, cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	fd = open_high(path, flags, mode);
	pthread_setcancelstate(cancel, NULL);
	return fd;
}

/*
 * Descriptors of 3 and above (descriptor.h).
 */
#include "store/descriptor.h"

#include <errno.h>
#include <fcntl.h>
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
	int fd;

	*numbers = (struct gm_low_numbers){{false}};
	if (low_numbers_are_used())
		return;
	while ((fd = open("/", O_PATH | O_CLOEXEC)) >= 0 && fd < GM_FIRST_OWN_DESCRIPTOR)
		numbers->taken[fd] = true;
	if (fd >= GM_FIRST_OWN_DESCRIPTOR)
		close(fd);
}

void gm_low_numbers_give_back(const struct gm_low_numbers *numbers)
{
	int fd;

	for (fd = 0; fd < GM_FIRST_OWN_DESCRIPTOR; fd++)
		if (numbers->taken[fd])
			close(fd);
}

int gm_open(const char *path, int flags, mode_t mode)
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

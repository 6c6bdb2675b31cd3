/*
 * See mapped_file.h. Lines read "FROM-TO PERMISSIONS OFFSET DEVICE INODE   PATH". The system calls
 * behind read() and close() are made directly: the C library's functions are points where a thread
 * may be cancelled (pthreads(7)).
 */
#include "stack/mapped_file.h"
#include "store/descriptor.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

struct maps_line {
	enum { IN_FROM, IN_TO, IN_MIDDLE, IN_PATH } part;
	uintptr_t from, to;
	size_t length; /* of the path so far */
};

static unsigned digit_value(char c)
{
	return c <= '9' ? (unsigned)(c - '0') : (unsigned)(c - 'a') + 10;
}

/* Takes the next character; true at the end of the line that has the address. */
static bool next_character(struct maps_line *line, char c, uintptr_t address, char *path,
			   size_t bytes)
{
	bool wanted = line->from <= address && address < line->to;

	if (c == '\n') {
		if (wanted && line->part > IN_TO)
			return true;
		*line = (struct maps_line){0};
	} else if (line->part == IN_FROM) {
		if (c == '-')
			line->part = IN_TO;
		else
			line->from = line->from * 16 + digit_value(c);
	} else if (line->part == IN_TO) {
		if (c == ' ')
			line->part = IN_MIDDLE;
		else
			line->to = line->to * 16 + digit_value(c);
	} else if (wanted && (c == '/' || line->part == IN_PATH)) {
		line->part = IN_PATH;
		if (line->length < bytes)
			path[line->length] = c;
		line->length++;
	}
	return false;
}

bool gm_mapped_file(uintptr_t address, char *path, size_t bytes)
{
	int fd = gm_open("/proc/self/maps", O_RDONLY, 0);
	long count;
	struct maps_line line = {0};
	bool found = false;
	char text[1024];

	while (fd >= 0 && !found && (count = syscall(SYS_read, fd, text, sizeof(text))) > 0)
		for (long i = 0; i < count && !found; i++)
			found = next_character(&line, text[i], address, path, bytes);
	if (fd >= 0)
		syscall(SYS_close, fd);
	if (!found || !line.length || line.length >= bytes)
		return false;
	path[line.length] = '\0';
	return true;
}

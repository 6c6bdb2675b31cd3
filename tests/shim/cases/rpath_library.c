const char *say(void);

const char *say(void)
{
	return "found by its own RPATH";
}

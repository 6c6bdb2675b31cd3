/*
 * Another tool's injection, which does nothing; also stands in for a library that has only a name.
 */
__attribute__((visibility("default"))) int InitializeInjection(void);

int InitializeInjection(void)
{
	return 1;
}

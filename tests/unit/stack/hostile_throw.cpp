// The exceptions of hostile.c.
#include "hostile.h"

void hostile_throw(void)
{
	throw 1;
}

void hostile_catch(void (*function)(void *), void *data)
{
	try {
		function(data);
	} catch (int) {
		hostile_capture();
	}
}

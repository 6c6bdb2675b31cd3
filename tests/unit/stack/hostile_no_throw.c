/* Where there is no C++: hostile.c without exceptions. */
#include "hostile.h"

void hostile_throw(void)
{
}

void hostile_catch(void (*function)(void *), void *data)
{
	function(data);
	hostile_capture();
}

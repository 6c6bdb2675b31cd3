/* Calls back from a frame whose size is the build's. */
void call_back(void (*function)(void));

void call_back(void (*function)(void))
{
	volatile char room[FRAME_BYTES];

	room[0] = 1;
	function();
	room[1] = room[0];
}

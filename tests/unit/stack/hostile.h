/* What hostile.c and its C++ part call of each other. */
#ifndef HOSTILE_H
#define HOSTILE_H

#ifdef __cplusplus
extern "C" {
#endif

/* Compares walks from here. */
void hostile_capture(void);

/* Calls something, chosen at random, that calls it again with less, and captures at 0. */
void hostile_wander(unsigned depth);

/* Throws; calls and catches, if there is C++ here. */
void hostile_throw(void);
void hostile_catch(void (*function)(void *), void *data);

#ifdef __cplusplus
}
#endif

/* In the libraries: has a frame full of `fill`, calls `capture`, and says where it returns to. */
typedef unsigned long hostile_plugin(unsigned long fill, void (*capture)(void));

#define HOSTILE_SMALL 256u
#define HOSTILE_LARGE 4096u

#endif

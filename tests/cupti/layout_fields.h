/*
 * LAYOUT(name, type, list): one entry of a table of layouts; nothing for a row without parameters.
 */
#ifndef TESTS_CUPTI_LAYOUT_FIELDS_H
#define TESTS_CUPTI_LAYOUT_FIELDS_H

#define OFFSET_1(s, t, ...)	__VA_OPT__(offsetof(s, __VA_ARGS__))
#define OFFSET_2(s, t, n, ...)	offsetof(s, n), OFFSET_1(s, __VA_ARGS__)
#define OFFSET_3(s, t, n, ...)	offsetof(s, n), OFFSET_2(s, __VA_ARGS__)
#define OFFSET_4(s, t, n, ...)	offsetof(s, n), OFFSET_3(s, __VA_ARGS__)
#define OFFSET_5(s, t, n, ...)	offsetof(s, n), OFFSET_4(s, __VA_ARGS__)
#define OFFSET_6(s, t, n, ...)	offsetof(s, n), OFFSET_5(s, __VA_ARGS__)
#define OFFSET_7(s, t, n, ...)	offsetof(s, n), OFFSET_6(s, __VA_ARGS__)
#define OFFSET_8(s, t, n, ...)	offsetof(s, n), OFFSET_7(s, __VA_ARGS__)
#define OFFSET_9(s, t, n, ...)	offsetof(s, n), OFFSET_8(s, __VA_ARGS__)
#define OFFSET_10(s, t, n, ...) offsetof(s, n), OFFSET_9(s, __VA_ARGS__)
#define OFFSET_11(s, t, n, ...) offsetof(s, n), OFFSET_10(s, __VA_ARGS__)
#define OFFSET_12(s, t, n, ...) offsetof(s, n), OFFSET_11(s, __VA_ARGS__)

#define WIDTH(s, n)	       sizeof(((s *)0)->n)
#define WIDTH_1(s, t, ...)     __VA_OPT__(WIDTH(s, __VA_ARGS__))
#define WIDTH_2(s, t, n, ...)  WIDTH(s, n), WIDTH_1(s, __VA_ARGS__)
#define WIDTH_3(s, t, n, ...)  WIDTH(s, n), WIDTH_2(s, __VA_ARGS__)
#define WIDTH_4(s, t, n, ...)  WIDTH(s, n), WIDTH_3(s, __VA_ARGS__)
#define WIDTH_5(s, t, n, ...)  WIDTH(s, n), WIDTH_4(s, __VA_ARGS__)
#define WIDTH_6(s, t, n, ...)  WIDTH(s, n), WIDTH_5(s, __VA_ARGS__)
#define WIDTH_7(s, t, n, ...)  WIDTH(s, n), WIDTH_6(s, __VA_ARGS__)
#define WIDTH_8(s, t, n, ...)  WIDTH(s, n), WIDTH_7(s, __VA_ARGS__)
#define WIDTH_9(s, t, n, ...)  WIDTH(s, n), WIDTH_8(s, __VA_ARGS__)
#define WIDTH_10(s, t, n, ...) WIDTH(s, n), WIDTH_9(s, __VA_ARGS__)
#define WIDTH_11(s, t, n, ...) WIDTH(s, n), WIDTH_10(s, __VA_ARGS__)
#define WIDTH_12(s, t, n, ...) WIDTH(s, n), WIDTH_11(s, __VA_ARGS__)

#define STRIP(...)		 __VA_ARGS__
#define LAYOUT(name, type, list) LAYOUT_(name, type, STRIP list)
#define LAYOUT_(name, type, ...) LAYOUT__(GM_PAIRS(__VA_ARGS__), name, type, __VA_ARGS__)
#define LAYOUT__(pairs, name, type, t, ...)                                                        \
	__VA_OPT__({#name,                                                                         \
		    sizeof(type),                                                                  \
		    {GM_CAT(OFFSET_, pairs)(type, t, __VA_ARGS__)},                                \
		    {GM_CAT(WIDTH_, pairs)(type, t, __VA_ARGS__)}}, )

#endif

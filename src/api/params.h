/*
 * Preprocessor helpers: a row of cuda_api.def gives its parameters as (type, name, type, name,
 * ...), and from that one list come the prototype, the argument list, CUPTI's parameter structure
 * and the local variables that a row's expressions name.
 */
#ifndef GM_API_PARAMS_H
#define GM_API_PARAMS_H

#define GM_CAT_(a, b) a##b
#define GM_CAT(a, b) GM_CAT_(a, b)
#define GM_COUNT_(a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, \
		  a19, a20, a21, a22, n, ...)                                                     \
	n
/* Number of pairs in a list of 1 to 11 pairs. */
#define GM_PAIRS(...)                                                                             \
	GM_COUNT_(__VA_ARGS__, 11, 11, 10, 10, 9, 9, 8, 8, 7, 7, 6, 6, 5, 5, 4, 4, 3, 3, 2, 2, 1, 1)

#define GM_PARAM_1(t, n)      t n
#define GM_PARAM_2(t, n, ...) t n, GM_PARAM_1(__VA_ARGS__)
#define GM_PARAM_3(t, n, ...) t n, GM_PARAM_2(__VA_ARGS__)
#define GM_PARAM_4(t, n, ...) t n, GM_PARAM_3(__VA_ARGS__)
#define GM_PARAM_5(t, n, ...) t n, GM_PARAM_4(__VA_ARGS__)
#define GM_PARAM_6(t, n, ...) t n, GM_PARAM_5(__VA_ARGS__)
#define GM_PARAM_7(t, n, ...) t n, GM_PARAM_6(__VA_ARGS__)
#define GM_PARAM_8(t, n, ...) t n, GM_PARAM_7(__VA_ARGS__)
#define GM_PARAM_9(t, n, ...) t n, GM_PARAM_8(__VA_ARGS__)
#define GM_PARAM_10(t, n, ...) t n, GM_PARAM_9(__VA_ARGS__)
#define GM_PARAM_11(t, n, ...) t n, GM_PARAM_10(__VA_ARGS__)

#define GM_NAME_1(t, n)	     n
#define GM_NAME_2(t, n, ...) n, GM_NAME_1(__VA_ARGS__)
#define GM_NAME_3(t, n, ...) n, GM_NAME_2(__VA_ARGS__)
#define GM_NAME_4(t, n, ...) n, GM_NAME_3(__VA_ARGS__)
#define GM_NAME_5(t, n, ...) n, GM_NAME_4(__VA_ARGS__)
#define GM_NAME_6(t, n, ...) n, GM_NAME_5(__VA_ARGS__)
#define GM_NAME_7(t, n, ...) n, GM_NAME_6(__VA_ARGS__)
#define GM_NAME_8(t, n, ...) n, GM_NAME_7(__VA_ARGS__)
#define GM_NAME_9(t, n, ...) n, GM_NAME_8(__VA_ARGS__)
#define GM_NAME_10(t, n, ...) n, GM_NAME_9(__VA_ARGS__)
#define GM_NAME_11(t, n, ...) n, GM_NAME_10(__VA_ARGS__)

/* After another parameter: each with a comma before it. A function without parameters has none. */
#define GM_MORE_1(t, ...)    __VA_OPT__(, t __VA_ARGS__)
#define GM_MORE_2(t, n, ...) , t n GM_MORE_1(__VA_ARGS__)
#define GM_MORE_3(t, n, ...) , t n GM_MORE_2(__VA_ARGS__)
#define GM_MORE_4(t, n, ...) , t n GM_MORE_3(__VA_ARGS__)
#define GM_MORE_5(t, n, ...) , t n GM_MORE_4(__VA_ARGS__)
#define GM_MORE_6(t, n, ...) , t n GM_MORE_5(__VA_ARGS__)
#define GM_MORE_7(t, n, ...) , t n GM_MORE_6(__VA_ARGS__)
#define GM_MORE_8(t, n, ...) , t n GM_MORE_7(__VA_ARGS__)
#define GM_MORE_9(t, n, ...) , t n GM_MORE_8(__VA_ARGS__)
#define GM_MORE_10(t, n, ...) , t n GM_MORE_9(__VA_ARGS__)
#define GM_MORE_11(t, n, ...) , t n GM_MORE_10(__VA_ARGS__)

#define GM_MORE_NAME_1(t, ...)	  __VA_OPT__(, __VA_ARGS__)
#define GM_MORE_NAME_2(t, n, ...) , n GM_MORE_NAME_1(__VA_ARGS__)
#define GM_MORE_NAME_3(t, n, ...) , n GM_MORE_NAME_2(__VA_ARGS__)
#define GM_MORE_NAME_4(t, n, ...) , n GM_MORE_NAME_3(__VA_ARGS__)
#define GM_MORE_NAME_5(t, n, ...) , n GM_MORE_NAME_4(__VA_ARGS__)
#define GM_MORE_NAME_6(t, n, ...) , n GM_MORE_NAME_5(__VA_ARGS__)
#define GM_MORE_NAME_7(t, n, ...) , n GM_MORE_NAME_6(__VA_ARGS__)
#define GM_MORE_NAME_8(t, n, ...) , n GM_MORE_NAME_7(__VA_ARGS__)
#define GM_MORE_NAME_9(t, n, ...) , n GM_MORE_NAME_8(__VA_ARGS__)
#define GM_MORE_NAME_10(t, n, ...) , n GM_MORE_NAME_9(__VA_ARGS__)
#define GM_MORE_NAME_11(t, n, ...) , n GM_MORE_NAME_10(__VA_ARGS__)

/* A function without parameters has no field and no variable. */
#define GM_FIELD_1(t, ...)    __VA_OPT__(t __VA_ARGS__;)
#define GM_FIELD_2(t, n, ...) t n; GM_FIELD_1(__VA_ARGS__)
#define GM_FIELD_3(t, n, ...) t n; GM_FIELD_2(__VA_ARGS__)
#define GM_FIELD_4(t, n, ...) t n; GM_FIELD_3(__VA_ARGS__)
#define GM_FIELD_5(t, n, ...) t n; GM_FIELD_4(__VA_ARGS__)
#define GM_FIELD_6(t, n, ...) t n; GM_FIELD_5(__VA_ARGS__)
#define GM_FIELD_7(t, n, ...) t n; GM_FIELD_6(__VA_ARGS__)
#define GM_FIELD_8(t, n, ...) t n; GM_FIELD_7(__VA_ARGS__)
#define GM_FIELD_9(t, n, ...) t n; GM_FIELD_8(__VA_ARGS__)
#define GM_FIELD_10(t, n, ...) t n; GM_FIELD_9(__VA_ARGS__)
#define GM_FIELD_11(t, n, ...) t n; GM_FIELD_10(__VA_ARGS__)

#define GM_LOCAL_1(t, ...)    __VA_OPT__(t __VA_ARGS__ = params->__VA_ARGS__; (void)__VA_ARGS__;)
#define GM_LOCAL_2(t, n, ...) t n = params->n; (void)n; GM_LOCAL_1(__VA_ARGS__)
#define GM_LOCAL_3(t, n, ...) t n = params->n; (void)n; GM_LOCAL_2(__VA_ARGS__)
#define GM_LOCAL_4(t, n, ...) t n = params->n; (void)n; GM_LOCAL_3(__VA_ARGS__)
#define GM_LOCAL_5(t, n, ...) t n = params->n; (void)n; GM_LOCAL_4(__VA_ARGS__)
#define GM_LOCAL_6(t, n, ...) t n = params->n; (void)n; GM_LOCAL_5(__VA_ARGS__)
#define GM_LOCAL_7(t, n, ...) t n = params->n; (void)n; GM_LOCAL_6(__VA_ARGS__)
#define GM_LOCAL_8(t, n, ...) t n = params->n; (void)n; GM_LOCAL_7(__VA_ARGS__)
#define GM_LOCAL_9(t, n, ...) t n = params->n; (void)n; GM_LOCAL_8(__VA_ARGS__)
#define GM_LOCAL_10(t, n, ...) t n = params->n; (void)n; GM_LOCAL_9(__VA_ARGS__)
#define GM_LOCAL_11(t, n, ...) t n = params->n; (void)n; GM_LOCAL_10(__VA_ARGS__)

/* Each takes a row's list in its parentheses, which is (void, ) without parameters. */
#define GM_PARAMS(list) GM_PARAMS_ list
#define GM_PARAMS_(...) GM_CAT(GM_PARAM_, GM_PAIRS(__VA_ARGS__))(__VA_ARGS__)
#define GM_NAMES(list)	GM_NAMES_ list
#define GM_NAMES_(...)	GM_CAT(GM_NAME_, GM_PAIRS(__VA_ARGS__))(__VA_ARGS__)
#define GM_MORE_PARAMS(list) GM_MORE_PARAMS_ list
#define GM_MORE_PARAMS_(...) GM_CAT(GM_MORE_, GM_PAIRS(__VA_ARGS__))(__VA_ARGS__)
#define GM_MORE_NAMES(list)  GM_MORE_NAMES_ list
#define GM_MORE_NAMES_(...)  GM_CAT(GM_MORE_NAME_, GM_PAIRS(__VA_ARGS__))(__VA_ARGS__)
#define GM_FIELDS(list) GM_FIELDS_ list
#define GM_FIELDS_(...) GM_CAT(GM_FIELD_, GM_PAIRS(__VA_ARGS__))(__VA_ARGS__)
#define GM_LOCALS(list) GM_LOCALS_ list
#define GM_LOCALS_(...) GM_CAT(GM_LOCAL_, GM_PAIRS(__VA_ARGS__))(__VA_ARGS__)

#endif

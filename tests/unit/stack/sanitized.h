/* Whether the address sanitizer watches: clang says so by a feature, gcc by a macro. */
#ifndef SANITIZED_H
#define SANITIZED_H

#ifdef __has_feature
#define SANITIZED __has_feature(address_sanitizer)
#elif defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

#endif

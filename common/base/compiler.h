/* Attributes and the two scope macros, CLEANUP and TAKE. */
#pragma once

#define MUST_CHECK __attribute__((warn_unused_result))
#define PRINTF_LIKE(string, first) __attribute__((format(printf, string, first)))
#define NULL_TERMINATED __attribute__((sentinel))
#define UNUSED __attribute__((unused))

/* Binds a variable to its scope: CLEANUP(arena_destroyp) struct arena *arena = arena_create(); */
#define CLEANUP(function) __attribute__((cleanup(function)))

/* Defines the function that CLEANUP needs: DEFINE_CLEANUP(struct arena *, arena_destroy) makes
 * arena_destroyp. */
#define DEFINE_CLEANUP(type, function)                                                             \
    UNUSED static inline void function##p(type *pointer)                                           \
    {                                                                                              \
        function(*pointer);                                                                        \
    }

/* The same for a variable that is no pointer: DEFINE_CLEANUP_OF(struct buf, buf_release). */
#define DEFINE_CLEANUP_OF(type, function)                                                          \
    UNUSED static inline void function##p(type *variable)                                          \
    {                                                                                              \
        function(variable);                                                                        \
    }

/* Hands a scope-bound pointer out of its scope: *ret = TAKE(object); */
#define TAKE(pointer)                                                                              \
    __extension__({                                                                                \
        __typeof__(pointer) taken_ = (pointer);                                                    \
        (pointer) = NULL;                                                                          \
        taken_;                                                                                    \
    })

#define ARRAY_LEN(array) (sizeof(array) / sizeof((array)[0]))

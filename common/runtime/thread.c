#include "common/runtime/thread.h"

#include <assert.h>

#define THREAD_NAME 16 /* Linux's limit, with the NUL */

int thread_start(pthread_t *ret, const char *name, void *(*function)(void *ctx), void *ctx,
                 struct error *err)
{
    pthread_attr_t attributes;
    char short_name[THREAD_NAME];

    int r = pthread_attr_init(&attributes);
    assert(r == 0);
    r = pthread_attr_setstacksize(&attributes, THREAD_STACK);
    assert(r == 0);
    r = pthread_create(ret, &attributes, function, ctx);
    (void)pthread_attr_destroy(&attributes);
    if (r)
        return error_set(err, ERROR_INTERNAL, "thread '%s' cannot be started: %s", name,
                         strerror(r));

    (void)snprintf(short_name, sizeof(short_name), "%s", name);
    (void)pthread_setname_np(*ret, short_name);
    return 0;
}

void thread_join(pthread_t thread)
{
    int r = pthread_join(thread, NULL);

    assert(r == 0); /* joined twice, or by itself: a bug in the caller */
}

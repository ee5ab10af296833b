/* The lock of a store without the store. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <sys/file.h>

#include "standalone/store/kv_internal.h"

int kv_hold(const char *path, int *ret, struct error *err)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const char *lock_path = arena_printf(arena, "%s-lock", path);
    int fd = open(lock_path, O_RDONLY | O_CLOEXEC);
    int reason = errno;

    *ret = KV_NOT_HELD;
    if (fd < 0)
        return reason == ENOENT ? 0
                                : error_set(err, ERROR_UNAVAILABLE, "open '%s': %s", lock_path,
                                            strerror(reason));
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        reason = errno;
        (void)close(fd);
        if (reason == EWOULDBLOCK)
            return error_set(err, ERROR_UNAVAILABLE, "store '%s' " KV_IN_USE, path);
        return error_set(err, ERROR_UNAVAILABLE, "lock '%s': %s", lock_path, strerror(reason));
    }
    *ret = fd;
    return 0;
}

void kv_let_go(int hold)
{
    if (hold != KV_NOT_HELD)
        (void)close(hold);
}

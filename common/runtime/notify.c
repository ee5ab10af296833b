#include "common/runtime/notify.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/base/log.h"
#include "common/base/str.h"

/* "/run/systemd/notify", or "@name" in the abstract name space, which begins with a NUL. */
static socklen_t parse_address(const char *path, struct sockaddr_un *ret)
{
    size_t len = strlen(path);

    if ((*path != '/' && *path != '@') || len < 2 || len >= sizeof(ret->sun_path))
        return 0;
    *ret = (struct sockaddr_un){ .sun_family = AF_UNIX };
    memcpy(ret->sun_path, path, len);
    if (*path == '@')
        ret->sun_path[0] = '\0';
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
}

static int send_to(const char *path, const char *text)
{
    struct sockaddr_un address;
    const struct timeval patience = { .tv_sec = 1 };
    socklen_t len = parse_address(path, &address);

    if (!len) {
        errno = EAFNOSUPPORT;
        return -1;
    }
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    ssize_t sent =
        sendto(fd, text, strlen(text), MSG_NOSIGNAL, (const struct sockaddr *)&address, len);
    int failure = errno;
    (void)close(fd);
    errno = failure;
    return sent < 0 ? -1 : 0;
}

void notify_send(const char *state, const char *status)
{
    const char *path = getenv("NOTIFY_SOCKET");
    char text[NOTIFY_MAX];

    if (!path || !*path)
        return;
    (void)snprintf(text, sizeof(text), "%s%s%s%s", state ? state : "", state && status ? "\n" : "",
                   status ? "STATUS=" : "", status ? status : "");
    for (size_t i = state ? strlen(state) + 1 : 0; i < sizeof(text) && text[i]; i++) {
        if (text[i] == '\n') /* would begin another variable */
            text[i] = ' ';
    }
    if (send_to(path, text) < 0)
        log_warn("the service manager cannot be notified, ignoring", "socket", path, "error",
                 strerrordesc_np(errno), NULL);
}

uint32_t notify_watchdog_ms(void)
{
    const char *period = getenv("WATCHDOG_USEC"), *process = getenv("WATCHDOG_PID");
    int64_t us, pid;

    if (!str_to_int64(period ? period : "", &us) || us < 2000)
        return 0;
    if (process && (!str_to_int64(process, &pid) || pid != getpid()))
        return 0;
    return us / 2000 < UINT32_MAX ? (uint32_t)(us / 2000) : UINT32_MAX;
}

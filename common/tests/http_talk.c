#include "common/tests/http_talk.h"

#include <arpa/inet.h>
#include <check.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#define PATIENCE_MS 20000
#define SILENCE_MS 100

int http_dial(unsigned port)
{
    struct sockaddr_in to = { .sin_family = AF_INET,
                              .sin_port = htons((uint16_t)port),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    ck_assert_int_eq(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
    return fd;
}

static void say_bytes(int fd, const char *bytes, size_t len)
{
    ck_assert_int_eq((int)send(fd, bytes, len, MSG_NOSIGNAL), (int)len);
}

void say(int fd, const char *text)
{
    say_bytes(fd, text, strlen(text));
}

void say_many(int fd, size_t count)
{
    char many[HTTP_TALK_MAX];

    memset(many, 'x', sizeof(many));
    say_bytes(fd, many, count);
}

const char *hear(int fd, char ret[static HTTP_TALK_MAX], const char *enough)
{
    size_t len = 0;

    ret[0] = '\0';
    for (;;) {
        struct pollfd wait = { .fd = fd, .events = POLLIN };
        ck_assert_msg(poll(&wait, 1, PATIENCE_MS) == 1, "no answer; so far: %s", ret);
        ssize_t n = recv(fd, ret + len, HTTP_TALK_MAX - 1 - len, 0);
        if (n <= 0) {
            ck_assert_msg(!enough, "closed before '%s'; so far: %s", enough, ret);
            return ret;
        }
        len += (size_t)n;
        ret[len] = '\0';
        if (enough && strstr(ret, enough))
            return ret;
    }
}

bool is_silent(int fd)
{
    struct pollfd wait = { .fd = fd, .events = POLLIN };

    return poll(&wait, 1, SILENCE_MS) == 0;
}

#include "common/tests/http_talk.h"

#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PATIENCE_MS 120000
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

bool hears(int fd, char ret[static HTTP_TALK_MAX], const char *enough)
{
    size_t len = 0;

    ret[0] = '\0';
    for (;;) {
        struct pollfd wait = { .fd = fd, .events = POLLIN };
        ck_assert_msg(poll(&wait, 1, PATIENCE_MS) == 1, "no answer; so far: %s", ret);
        ssize_t n = recv(fd, ret + len, HTTP_TALK_MAX - 1 - len, 0);
        if (n <= 0)
            return !enough;
        len += (size_t)n;
        ret[len] = '\0';
        if (enough && strstr(ret, enough))
            return true;
    }
}

const char *hear(int fd, char ret[static HTTP_TALK_MAX], const char *enough)
{
    ck_assert_msg(hears(fd, ret, enough), "closed before '%s'; so far: %s", enough ? enough : "",
                  ret);
    return ret;
}

size_t hear_all(int fd)
{
    static char bytes[1 << 16];
    size_t len = 0;
    ssize_t n;

    while ((n = recv(fd, bytes, sizeof(bytes), 0)) > 0)
        len += (size_t)n;
    return len;
}

bool is_open(int fd)
{
    char byte;

    return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

void outlast_a_request(unsigned port)
{
    char text[HTTP_TALK_MAX];

    for (int i = 0; i < 2; i++) {
        int fd = http_dial(port);

        ck_assert_str_eq(hear(fd, text, NULL), "");
        close(fd);
    }
}

bool is_silent(int fd)
{
    struct pollfd wait = { .fd = fd, .events = POLLIN };

    /* real time: only time shows that nothing comes */
    return poll(&wait, 1, SILENCE_MS) == 0;
}

/* The fixture itself: ports that tests share a machine for, and what it says of a program that does not start. */
#include <arpa/inet.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <sys/socket.h>
#include <sys/wait.h>

#include "common/tests/process.h"
#include "common/tests/suite.h"

static bool listens(uint16_t port, bool reuse)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons(port),
                                   .sin_addr = { .s_addr = htonl(INADDR_LOOPBACK) } };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = reuse;

    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)), 0);
    bool ok = bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0 && listen(fd, 1) == 0;
    close(fd);
    return ok;
}

TEST(a_program_listens_on_its_port_and_does_so_again)
{
    uint16_t port = process_free_port();

    ck_assert(listens(port, true));
    ck_assert(listens(port, true));
}

TEST(a_port_is_of_one_process_until_it_ends)
{
    int from_child[2];
    uint16_t port = 0;

    ck_assert_int_eq(pipe(from_child), 0);
    pid_t pid = fork();
    if (pid == 0) {
        port = process_free_port();
        ck_assert_int_eq(write(from_child[1], &port, sizeof(port)), sizeof(port));
        pause();
        _exit(0);
    }
    ck_assert_int_eq(read(from_child[0], &port, sizeof(port)), sizeof(port));
    ck_assert(!listens(port, false));
    for (int i = 0; i < 50; i++)
        ck_assert_uint_ne(process_free_port(), port);
    (void)process_end(pid, SIGKILL);
    ck_assert(listens(port, false));
}

TEST(one_process_gets_each_port_once)
{
    uint16_t ports[50];

    for (size_t i = 0; i < 50; i++) {
        ports[i] = process_free_port();
        for (size_t k = 0; k < i; k++)
            ck_assert_uint_ne(ports[k], ports[i]);
    }
}

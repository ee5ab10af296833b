/* The first process of a pod: holds its namespaces, reaps, ends when told to. Linked statically. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void on_end(int signal_number)
{
    (void)signal_number;
    _exit(0);
}

static void on_child(int signal_number)
{
    (void)signal_number;
    while (waitpid(-1, NULL, WNOHANG) > 0)
        ;
}

int main(void)
{
    const struct sigaction end = { .sa_handler = on_end };
    const struct sigaction child = { .sa_handler = on_child, .sa_flags = SA_NOCLDSTOP };

    sigaction(SIGTERM, &end, NULL);
    sigaction(SIGINT, &end, NULL);
    sigaction(SIGCHLD, &child, NULL);
    for (;;)
        pause();
}

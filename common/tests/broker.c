#include "common/tests/broker.h"

#include <check.h>
#include <glob.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/wait.h>

#include "common/base/alloc.h"
#include "common/base/buf.h"
#include "common/tests/process.h"

#define MAX_CONFIG 65536

/* Tries 10 ms apart until a line must be logged: a loaded machine under sanitizers is slow. */
#define LOG_TRIES 12000

struct broker {
    char *dir;
    uint16_t port;
    struct buf config;
    pid_t pid; /* 0: does not run */
};

void broker_configure(struct broker *broker, const char *line)
{
    ck_assert(buf_printf(&broker->config, "%s\n", line));
}

struct broker *broker_create(void)
{
    struct broker *broker = xcalloc(1, sizeof(*broker));

    broker->dir = temp_dir_create();
    broker->port = process_free_port();
    broker->config.max = MAX_CONFIG;
    ck_assert(buf_printf(&broker->config,
                         "listener %u 127.0.0.1\n"
                         "user root\n"
                         "persistence_location %s/\n"
                         "log_type all\n",
                         broker->port, broker->dir));
    broker_configure(broker, "allow_anonymous true");
    broker_configure(broker, "persistence true");
    broker_configure(broker, "autosave_on_changes true");
    broker_configure(broker, "autosave_interval 1");
    broker_configure(broker, "max_queued_messages 0");
    return broker;
}

void broker_destroy(struct broker *broker)
{
    if (!broker)
        return;
    if (broker->pid)
        broker_kill(broker);
    temp_dir_destroy(broker->dir);
    buf_release(&broker->config);
    free(broker);
}

void broker_add_user(struct broker *broker, const char *name, const char *password)
{
    char path[512];

    (void)snprintf(path, sizeof(path), "%s/passwords", broker->dir);
    if (access(path, F_OK) != 0) {
        free(temp_file_write(broker->dir, "passwords", ""));
        ck_assert(buf_printf(&broker->config, "allow_anonymous false\npassword_file %s\n", path));
    }

    const char *const argv[] = { "mosquitto_passwd", "-b", path, name, password, NULL };

    process_run(broker->dir, argv);
}

void broker_refuse_subscriptions(struct broker *broker)
{
    glob_t found;

    ck_assert_msg(glob("/usr/lib/*/mosquitto_dynamic_security.so", 0, NULL, &found) == 0,
                  "mosquitto's plugin 'dynamic_security' is not installed, and this test needs it");

    char *path =
        temp_file_write(broker->dir, "security.json",
                        "{\"defaultACLAccess\":{\"publishClientSend\":true,"
                        "\"publishClientReceive\":true,\"subscribe\":false,"
                        "\"unsubscribe\":true},\"anonymousGroup\":\"all\",\"groups\":"
                        "[{\"groupname\":\"all\",\"roles\":[{\"rolename\":\"some\"}]}],"
                        "\"roles\":[{\"rolename\":\"some\",\"acls\":[{\"acltype\":"
                        "\"subscribeLiteral\",\"topic\":\"good\",\"priority\":0,"
                        "\"allow\":true},{\"acltype\":\"publishClientSend\",\"topic\":"
                        "\"$CONTROL/#\",\"priority\":0,\"allow\":true}]}],\"clients\":[]}");

    ck_assert(buf_printf(&broker->config, "plugin %s\nplugin_opt_config_file %s\n",
                         found.gl_pathv[0], path));
    globfree(&found);
    free(path);
}

void broker_start(struct broker *broker)
{
    char *config = temp_file_write(broker->dir, "mosquitto.conf", buf_string(&broker->config));
    char log_path[512];
    const char *const argv[] = { "mosquitto", "-c", config, NULL };

    ck_assert_int_eq(broker->pid, 0);
    (void)snprintf(log_path, sizeof(log_path), "%s/log", broker->dir);
    broker->pid = process_start(argv, log_path);
    process_wait_listening(broker->pid, broker->port, broker->dir, "log");
    free(config);
}

static void end(struct broker *broker, int signal)
{
    ck_assert_int_ne(broker->pid, 0);
    (void)process_end(broker->pid, signal);
    broker->pid = 0;
}

void broker_stop(struct broker *broker)
{
    end(broker, SIGTERM);
}

void broker_kill(struct broker *broker)
{
    end(broker, SIGKILL);
}

void broker_freeze(struct broker *broker)
{
    siginfo_t stopped;

    ck_assert_int_eq(kill(broker->pid, SIGSTOP), 0);
    /* Until then it may be at work. */
    ck_assert_int_eq(waitid(P_PID, (id_t)broker->pid, &stopped, WSTOPPED), 0);
}

void broker_thaw(struct broker *broker)
{
    ck_assert_int_eq(kill(broker->pid, SIGCONT), 0);
}

void broker_wait_logged(const struct broker *broker, const char *line)
{
    for (int i = 0;; i++) {
        char *log = temp_file_read(broker->dir, "log");
        bool found = strstr(log, line);

        ck_assert_msg(found || i < LOG_TRIES, "'%s' is not in %s", line, log);
        free(log);
        if (found)
            return;
        poll(NULL, 0, 10);
    }
}

const char *broker_dir(const struct broker *broker)
{
    return broker->dir;
}

uint16_t broker_port(const struct broker *broker)
{
    return broker->port;
}

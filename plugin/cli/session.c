#include "plugin/cli/session.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

static void on_request(void *ctx, const char *method UNUSED, int status UNUSED,
                       int64_t duration_ms UNUSED)
{
    ((struct session *)ctx)->has_asked = true;
}

int session_connect(struct session *session, struct error *err)
{
    const struct common_flags *flags = session->flags;
    const struct kube_config_person person = {
        .context = flags->context,
        .cluster = flags->cluster,
        .user = flags->user,
        .server = flags->server,
        .token = flags->token,
        .ns = flags->ns,
        .as = flags->as,
        .as_uid = flags->as_uid,
        .as_groups = flags->as_groups.items,
        .as_group_count = flags->as_groups.len,
        .insecure = flags->insecure,
    };
    const struct kube_config_options options = { .path = flags->kubeconfig, .person = &person };

    if (session->client)
        return 0;
    int r = kube_config_load_with(&options, &session->config, err);
    if (r < 0)
        return r;
    session->client = kube_client_create(session->config, (uint32_t)flags->request_timeout_ms);
    kube_client_set_observer(session->client, on_request, session);
    session->ns = kube_config_namespace(session->config);
    return 0;
}

void session_end(struct session *session)
{
    if (session->signals >= 0)
        (void)close(session->signals);
    session->signals = -1;
    kube_client_destroy(session->client);
    kube_config_destroy(session->config);
    session->client = NULL;
    session->config = NULL;
}

int session_status(const struct session *session, const struct error *err)
{
    return err->code == ERROR_INVALID && !session->has_asked ? EXIT_BAD_USE : EXIT_API;
}

void session_catch_signals(struct session *session)
{
    sigset_t set;

    if (session->signals >= 0)
        return;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGTERM);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    session->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

int session_signal_status(struct session *session)
{
    struct signalfd_siginfo info;

    return read(session->signals, &info, sizeof(info)) == sizeof(info) ? 128 + (int)info.ssi_signo
                                                                       : 0;
}

int session_sleep(struct session *session, int64_t ms)
{
    struct pollfd fd = { .events = POLLIN };

    session_catch_signals(session);
    fd.fd = session->signals;
    (void)poll(&fd, 1, (int)ms);
    return session_signal_status(session);
}

#include "bench/client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TIMEOUT_MS 60000

_Noreturn void bench_die(const char *what, const struct error *err)
{
    (void)fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what,
                  err ? err->message : "not in time");
    exit(EXIT_FAILURE);
}

const cJSON *bench_tree(struct arena *arena, const char *text)
{
    const cJSON *ret;
    struct error err = { 0 };

    if (json_parse(arena, text, strlen(text), &ret, &err) < 0)
        bench_die("what is built in", &err);
    return ret;
}

struct bench_client bench_connect(const char *kubeconfig)
{
    struct bench_client ret = { 0 };
    struct error err = { 0 };

    if (kube_config_load(kubeconfig, &ret.config, &err) < 0)
        bench_die("--kubeconfig", &err);
    ret.kube = kube_client_create(ret.config, TIMEOUT_MS);
    return ret;
}

void bench_disconnect(struct bench_client *client)
{
    kube_client_destroy(client->kube);
    kube_config_destroy(client->config);
}

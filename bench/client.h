/* What the benchmark's own clients of an API server share; whatever fails ends the program. */
#pragma once

#include "common/kube/client.h"

struct bench_client {
    struct kube_config *config;
    struct kube_client *kube;
};

_Noreturn void bench_die(const char *what, const struct error *err /* NULL: not in time */);
/* Of a text that is built in. */
const cJSON *bench_tree(struct arena *arena, const char *text);

/* As the kubeconfig says; a request may take 60 s. */
struct bench_client bench_connect(const char *kubeconfig);
void bench_disconnect(struct bench_client *client);

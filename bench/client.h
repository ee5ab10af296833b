/* Client of an API server for benchmarks. Every failure ends the program. */
#pragma once

#include "common/kube/client.h"

struct bench_client {
    struct kube_config *config;
    struct kube_client *kube;
};

_Noreturn void bench_die(const char *what, const struct error *err /* NULL: not in time */);
/* Parses a constant text. */
const cJSON *bench_tree(struct arena *arena, const char *text);

/* Connects by the kubeconfig. A request may take 60 s. */
struct bench_client bench_connect(const char *kubeconfig);
void bench_disconnect(struct bench_client *client);

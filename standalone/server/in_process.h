/* The API for code of this process: requests and watches without a socket. */
#pragma once

#include "common/kube/in_process.h"
#include "standalone/api/api.h"
#include "standalone/server/users.h"

/* The caller of the API. All of it is borrowed; a watch must not outlive the API. */
struct in_process {
    struct api *api;
    struct user user;
    const char *user_agent;   /* names the manager of fields where a request names none */
    struct users_file *users; /* users that may enter with a token; NULL: none */
};

http_roundtrip_fn in_process_roundtrip; /* ctx: struct in_process *; never fails, no watches */
/* For kube_config_create_in_process. */
struct kube_in_process in_process_of(struct in_process *self);

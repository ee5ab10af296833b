/* One request to the fake API server, executed. Not locked. */
#pragma once

#include "common/tests/fake_path.h"
#include "common/tests/fake_store.h"

struct fake_exchange {
    struct fake_store *store;
    struct arena *arena;
    const struct http_request *request;
    struct http_response *ret;
    struct fake_path path; /* of the request */
};

void fake_execute(struct fake_exchange *x);
/* Answers with a Status. */
void fake_refuse(struct fake_exchange *x, int code, const char *reason, const char *message);

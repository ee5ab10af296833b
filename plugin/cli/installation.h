/* This module finds the controller that serves an API server. Main thread only. */
#pragma once

#include "plugin/cli/session.h"

#define INSTALLATION_LEASE "propeller-controller"
/* The row of a command's options for its namespace. */
#define INSTALLATION_NAMESPACE(settings_type, member)                                              \
    {                                                                                              \
        .name = "system-namespace", .type = OPTION_STRING,                                         \
        .offset = offsetof(settings_type, member), .fallback = "propeller-system",                 \
        .value_name = "NAME", .help = "namespace of the controller"                                \
    }

/* Connects, and asks whether the server is propeller-standalone, which has the controller in its process. */
int installation_is_standalone(struct session *session, bool *ret, struct error *err) MUST_CHECK;

struct leader {
    const char *pod; /* name of the process that holds the Lease, in the arena; NULL: none does */
    int64_t renewed_us;
    int64_t age_us;   /* of the last renewal, by the clock of this machine */
    bool looks_alive; /* the age is not far from what it may be */
};
/* Reads a Lease. Pure. */
struct leader leader_of(struct arena *arena, const cJSON *lease, int64_t now_us);
/*
 * Reads the Lease of the controller in the namespace. A leader that does not look alive is one only if it renews the
 * Lease within ten seconds, as two clocks may differ; otherwise ret->pod is NULL.
 */
int leader_find(struct session *session, const char *ns, struct leader *ret,
                struct error *err) MUST_CHECK;

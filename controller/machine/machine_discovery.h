/*
 * This module finds the path of a kind that a spec names, by GET /apis/<group>/<version>, and keeps each answer for ten
 * minutes.
 *
 * Thread-safe; guarded by its own lock, which no request holds.
 */
#pragma once

#include "common/base/clock.h"
#include "common/kube/client.h"

#define MACHINE_DISCOVERY_KEPT_MS 600000
#define MACHINE_DISCOVERY_MAX 64           /* answers that are kept */
#define MACHINE_DISCOVERY_MAX_TEXT 262144u /* bytes of one */

struct machine_discovery;
struct machine_discovery *machine_discovery_create(const struct clock *clock);
void machine_discovery_destroy(struct machine_discovery *discovery); /* NULL is fine */

/* *ret is in the arena; NULL: the API server does not have it, it is cluster-wide, or api_version is no group and
 * version. An answer that lacks the kind is asked for again. Errors are those of kube_get_text, but NOT_FOUND. */
int machine_discovery_kind(struct machine_discovery *discovery, struct kube_client *client,
                           struct arena *arena, const char *api_version, const char *kind,
                           const struct kube_kind **ret, struct error *err) MUST_CHECK;

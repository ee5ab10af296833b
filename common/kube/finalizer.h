/* This module adds and removes one finalizer, bound to the version that was read. It never
 * writes a list that another client has changed meanwhile. */
#pragma once

#include "common/kube/client.h"

bool finalizer_has(const cJSON *object, const char *finalizer);
/*
 * object is the state that was read; ERROR_CONFLICT if it changed since. If nothing is to do,
 * nothing is sent and *ret is NULL. The reply is in the arena. Removing from an object that is gone succeeds.
 */
int finalizer_add(struct kube_client *client, struct arena *arena, const struct kube_kind *kind,
                  const cJSON *object, const char *finalizer, cJSON **ret,
                  struct error *err) MUST_CHECK;
int finalizer_remove(struct kube_client *client, const struct kube_kind *kind, const cJSON *object,
                     const char *finalizer, struct error *err) MUST_CHECK;

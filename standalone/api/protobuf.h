/* Objects in the API's protobuf encoding, which typed clients send since client-go 0.32. Read only: answers
 * are JSON, which the same clients accept. */
#pragma once

#include "common/json/json.h"

#define PROTOBUF_TYPE "application/vnd.kubernetes.protobuf"

/*
 * "k8s\0" and a runtime.Unknown (k8s.io/apimachinery/pkg/runtime/generated.proto) around an object of one of
 * the kinds that kubectl sends so: Namespace, ConfigMap, Secret, ServiceAccount, DeleteOptions and the
 * SelfSubject…Reviews. Fields that are not known here are left out, as a server of an older version does.
 * A new tree, owned by the arena. ERROR_INVALID: it is none of these, or damaged. ERROR_TOO_LARGE: it has more than
 * max_values values; a value may be two bytes in the message, and 200 in a tree.
 */
int protobuf_read(struct arena *arena, const char *bytes, size_t len, size_t max_values,
                  cJSON **ret, struct error *err) MUST_CHECK;

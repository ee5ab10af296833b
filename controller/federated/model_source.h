/* This module reads the model that a FederatedJob begins with, spec.modelRef, once, and checks
 * it. */
#pragma once

#include "controller/blobs/model_store.h"
#include "controller/federated/model.h"

/*
 *   model://sha256:<hex>                a model of any job of the namespace
 *   configmap://<name>[/<key>]          a ConfigMap of the namespace, data or binaryData; without key
 *                                       it must hold exactly one. configmap://<namespace>/<name>/<key>
 *                                       is the same, if the namespace is the job's own
 *   s3://<bucket>/<key>                 with --model-store s3, its bucket only
 *   https://<host>/<path>               redirects are followed, to https only
 *
 * followed by #sha256:<hex> of the bytes: needed with https, checked wherever it is.
 */
#define MODEL_SOURCE_MAX_REDIRECTS 3
#define MODEL_SOURCE_TIMEOUT_MS 60000

struct model_source {
    struct kube_client *client; /* get of ConfigMaps */
    struct model_store *store;
    const char *ca_file; /* for https; NULL: the system's authorities */
};

/* ERROR_INVALID, ERROR_NOT_FOUND, ERROR_FORBIDDEN, ERROR_TOO_LARGE (over the store's limit): trying
 * again cannot help, the message is for the job's condition. Others may pass. Blocks on the network. */
int model_source_read(const struct model_source *source, struct arena *arena, const char *ns,
                      const char *reference, struct fl_model *ret, struct error *err) MUST_CHECK;

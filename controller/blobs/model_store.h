/* Models and large updates, content-addressed: where they are kept between the steps of a round. */
#pragma once

#include <stdbool.h>

#include "common/kube/client.h"

/*
 * A reference is "model://sha256:<64 hex digits>" of the bytes. The bytes under it never change;
 * the digest is verified on every read, so a store that lies is an error, never a wrong model. Any
 * number of threads.
 *
 * A scope is the object that owns the bytes: the FederatedJob for models, the TrainingRound for
 * updates. It dies with its owner (configmap: by owner reference; s3: by model_store_forget). Equal bytes in two scopes are stored twice, so that the garbage
 * of one is never the model of another. Within one scope put and gc must not run at the same time:
 * models are put and collected by the reconcile of their job, updates are collected when their round
 * has ended and takes none any more.
 */
struct model_scope {
    const struct kube_kind *kind; /* of the owner */
    struct kube_name owner;
    const char *uid;
};

#define MODEL_REFERENCE_PREFIX "model://sha256:"
#define MODEL_REFERENCE_LEN 80 /* prefix, 64 digits, NUL */
/* The reference of these bytes, without storing them. */
const char *model_reference(const void *bytes, size_t len, char ret[static MODEL_REFERENCE_LEN]);
/* The hex digits, or NULL: not of that form (lower case, exactly 64). */
const char *model_reference_digest(const char *reference);

struct model_store;
struct model_store_type {
    const char *name;
    size_t max_bytes; /* of one model */
    bool is_owned;    /* the bytes die with their owner */
    int (*put)(struct model_store *self, const struct model_scope *scope, const char *digest,
               const char *bytes, size_t len, struct error *err);
    int (*get)(struct model_store *self, struct arena *arena, const struct model_scope *scope,
               const char *digest, const char **ret, size_t *ret_len, struct error *err);
    int (*find)(struct model_store *self, struct arena *arena, const char *ns, const char *digest,
                const char **ret, size_t *ret_len, struct error *err);
    int (*gc)(struct model_store *self, const struct model_scope *scope, const char *const *keep,
              size_t keep_len, struct error *err);
    void (*destroy)(struct model_store *self);
};
struct model_store {
    const struct model_store_type *type; /* first member of every implementation */
};

/* Twice is as once. ERROR_TOO_LARGE names size and limit: before a round starts, its base must fit. */
int model_store_put(struct model_store *store, const struct model_scope *scope, const char *bytes,
                    size_t len, char ret_reference[static MODEL_REFERENCE_LEN],
                    struct error *err) MUST_CHECK;
/* ERROR_NOT_FOUND: not there, or not all of it. ERROR_INVALID: no reference. ERROR_INTERNAL: other
 * bytes than the digest's. *ret is in the arena, NUL behind it. */
int model_store_get(struct model_store *store, struct arena *arena, const struct model_scope *scope,
                    const char *reference, const char **ret, size_t *ret_len,
                    struct error *err) MUST_CHECK;
/* In any scope of the namespace: the model of another job as the first one of this. */
int model_store_find(struct model_store *store, struct arena *arena, const char *ns,
                     const char *reference, const char **ret, size_t *ret_len,
                     struct error *err) MUST_CHECK;
/* Removes what is in the scope and not among the references; also what a crash left half stored. An
 * interrupted one is finished by the next. */
int model_store_gc(struct model_store *store, const struct model_scope *scope,
                   const char *const *keep, size_t keep_len, struct error *err) MUST_CHECK;
/* For implementations: whether a reference of the list has this digest. */
bool model_is_kept(const char *digest, const char *const *keep, size_t keep_len);
/* The owner is about to be deleted, or was: gc without keep, where what it owns does not die with it. */
int model_store_forget(struct model_store *store, const struct model_scope *scope,
                       struct error *err) MUST_CHECK;
size_t model_store_max_bytes(const struct model_store *store);
void model_store_destroy(struct model_store *store); /* NULL is fine */

/*
 * configmap: chunks of 768 KiB in immutable ConfigMaps "<owner>-model-<8 characters of its uid>-<16 digits>-<index>", owned by the scope;
 * chunk 0, written last and removed first, says how many there are. client is borrowed and needs get,
 * list, create and delete of ConfigMaps.
 */
#define MODEL_CONFIGMAP_MAX ((size_t)8 << 20)
struct model_store *model_store_configmap_create(struct kube_client *client);

/*
 * s3: one object "<prefix><namespace>/<uid of the owner>/sha256-<digits>", path-style addresses, requests
 * signed with AWS Signature Version 4. The strings are copied. ERROR_INVALID names the option that
 * cannot be used. Messages hold no key.
 */
#define MODEL_S3_MAX ((size_t)64 << 20)
#define MODEL_S3_PREFIX "propeller/"
struct model_s3_options {
    const char *endpoint; /* "https://s3.example.com", "http://minio.storage:9000" */
    const char *region;   /* NULL: us-east-1 */
    const char *bucket;   /* exists */
    const char *access_key;
    const char *secret_key;
    const char *session_token; /* NULL: none */
    /* Read for each request, as temporary credentials are replaced there every few hours; NULL:
     * those three. A file that cannot be read is an error that may pass. */
    const char *credentials_file;
    const char *ca_file; /* NULL: the system's authorities */
    uint32_t timeout_ms; /* of one request; 0: 60 s */
    /* Asked before every PUT and DELETE; false: ERROR_CANCELED, nothing is sent. A leader that was not told
     * of its end would else remove what the next one keeps. NULL: always. */
    bool (*may_write)(void *ctx);
    void *ctx;
};
int model_store_s3_create(const struct model_s3_options *options, struct model_store **ret,
                          struct error *err) MUST_CHECK;
/* An object of the bucket by its key, for modelRef s3://; not below MODEL_S3_PREFIX, which belongs to
 * the namespaces. store: of model_store_s3_create. */
int model_store_s3_read(struct model_store *store, struct arena *arena, const char *bucket,
                        const char *key, const char **ret, size_t *ret_len,
                        struct error *err) MUST_CHECK;
/* The name of the bucket; NULL: another kind of store. */
const char *model_store_s3_bucket(const struct model_store *store);
/* Writes an object of the bucket, not below MODEL_S3_PREFIX. store: of model_store_s3_create. */
int model_store_s3_write(struct model_store *store, const char *key, const char *bytes, size_t len,
                         struct error *err) MUST_CHECK;
/* --s3-credentials-file: lines of the AWS shared credentials format (profile "default", or none):
 * aws_access_key_id, aws_secret_access_key, aws_session_token. Fills those three of ret; in the arena. */
int model_s3_credentials_read(struct arena *arena, const char *path, struct model_s3_options *ret,
                              struct error *err) MUST_CHECK;

struct module;
struct module_host;
/* The store that the flags of the process name, with the rights of this module; for its create. The
 * module destroys it. Errors name the flag. */
int model_store_make(struct module_host *host, const struct module *user, struct model_store **ret,
                     struct error *err) MUST_CHECK;

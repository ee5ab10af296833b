#include "certs/cluster_place.h"

#include "common/base/digest.h"
#include "common/base/str.h"
#include "common/kube/guarded_patch.h"
#include "common/kube/kinds.h"

#define CERT_FIELD "tls.crt"
#define KEY_FIELD "tls.key"
#define TRUST_FIELD "ca.crt"
#define MADE_BY_CERT_MANAGER "cert-manager.io/certificate-name"

struct field {
    const char *key;
    const char *text;
};

static const char *field_of(struct arena *arena, const cJSON *secret, const char *key)
{
    const char *text = json_string(json_path(secret, "data", key, NULL), NULL);

    return text ? base64_decode(arena, text, strlen(text), NULL) : NULL;
}

static int load(void *ctx, struct arena *arena, struct cert_observed *ret, struct error *err)
{
    struct cluster_place *self = ctx;
    struct configurations *configurations = &self->configurations;
    const struct {
        const char *name;
        const cJSON **ret;
        struct cert_pair *pair;
    } secrets[] = { { CERT_SECRET_CA, &self->ca, &ret->ca },
                    { CERT_SECRET_LEAF, &self->leaf, &ret->leaf } };

    int r = configurations_load(configurations, arena, ret, err);
    if (r < 0 || ret->keep_out)
        return r;

    for (size_t i = 0; i < ARRAY_LEN(secrets); i++) {
        r = configurations_read(configurations->client, arena, &KIND_SECRET, configurations->ns,
                                secrets[i].name, secrets[i].ret, err);
        if (r < 0)
            return r;
        if (json_path(*secrets[i].ret, "metadata", "annotations", MADE_BY_CERT_MANAGER, NULL))
            ret->keep_out = arena_printf(arena, "cert-manager looks after Secret '%s/%s'",
                                         configurations->ns, secrets[i].name);
        secrets[i].pair->cert = field_of(arena, *secrets[i].ret, CERT_FIELD);
        secrets[i].pair->key = field_of(arena, *secrets[i].ret, KEY_FIELD);
    }
    ret->ca.cert = cert_first(arena, ret->ca.cert);
    ret->trust = field_of(arena, self->ca, TRUST_FIELD);
    return 0;
}

static cJSON *encoded(struct arena *arena, const char *text)
{
    return cJSON_CreateString(base64_encode(arena, text, strlen(text)));
}

static int create_secret(const struct cluster_place *self, struct arena *arena, const char *name,
                         const struct field *fields, size_t count, struct error *err)
{
    cJSON *secret = json_object(arena);
    cJSON *metadata = json_set_object(secret, "metadata");
    cJSON *labels = json_set_object(metadata, "labels");

    json_set_string(secret, "apiVersion", "v1");
    json_set_string(secret, "kind", "Secret");
    json_set_string(secret, "type", "kubernetes.io/tls");
    json_set_string(metadata, "name", name);
    json_set_string(metadata, "namespace", self->configurations.ns);
    json_set_string(labels, "app.kubernetes.io/part-of", "propeller");
    cJSON *data = json_set_object(secret, "data");
    for (size_t i = 0; i < count; i++)
        json_set(data, fields[i].key, encoded(arena, fields[i].text));

    int r = kube_create(self->configurations.client, NULL, &KIND_SECRET, secret, NULL, err);
    if (r == -ERROR_EXISTS) /* since it was looked for */
        return error_set(err, ERROR_CONFLICT, "Secret '%s' is there already", name);
    return r;
}

/* read NULL: it is not there. */
static int write_secret(const struct cluster_place *self, struct arena *arena, const char *name,
                        const cJSON *read, const struct field *fields, size_t count,
                        struct error *err)
{
    struct kube_name key;

    if (!read)
        return create_secret(self, arena, name, fields, count, err);
    if (!kube_name_set(&key, self->configurations.ns, name))
        return error_set(err, ERROR_INVALID, "name '%s' is too long", name);

    struct json_patch *patch = guarded_patch_create(arena, read, "data");
    for (size_t i = 0; i < count; i++)
        json_patch_set(patch, arena_printf(arena, "/data/%s", fields[i].key),
                       encoded(arena, fields[i].text));
    return guarded_patch_send(self->configurations.client, &KIND_SECRET, &key, patch, err);
}

static int save_ca(void *ctx, struct arena *arena, const struct cert_pair *ca, const char *trust,
                   struct error *err)
{
    const struct cluster_place *self = ctx;
    const struct field fields[] = { { CERT_FIELD, ca->cert },
                                    { KEY_FIELD, ca->key },
                                    { TRUST_FIELD, trust } };

    return write_secret(self, arena, CERT_SECRET_CA, self->ca, fields, ARRAY_LEN(fields), err);
}

static int save_leaf(void *ctx, struct arena *arena, const struct cert_pair *leaf,
                     struct error *err)
{
    const struct cluster_place *self = ctx;
    const struct field fields[] = { { CERT_FIELD, leaf->cert }, { KEY_FIELD, leaf->key } };

    return write_secret(self, arena, CERT_SECRET_LEAF, self->leaf, fields, ARRAY_LEN(fields), err);
}

static int save_bundles(void *ctx, struct arena *arena, const char *trust, struct error *err)
{
    struct cluster_place *self = ctx;

    return configurations_save(&self->configurations, arena, trust, err);
}

struct cert_place cluster_place(struct cluster_place *self)
{
    return (struct cert_place){ .self = self,
                                .load = load,
                                .save_ca = save_ca,
                                .save_leaf = save_leaf,
                                .save_bundles = save_bundles };
}

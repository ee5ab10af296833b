#include "certs/configurations.h"

#include "common/base/digest.h"
#include "common/base/str.h"
#include "common/kube/guarded_patch.h"
#include "common/kube/kinds.h"

static const struct kube_kind *const KINDS[CONFIGURATION_KINDS] = { &KIND_VALIDATING_WEBHOOKS,
                                                                    &KIND_MUTATING_WEBHOOKS };

/* cert-manager's cainjector puts in a caBundle of its own where one of these is. */
static const char *const INJECTORS[] = { "cert-manager.io/inject-ca-from",
                                         "cert-manager.io/inject-ca-from-secret",
                                         "cert-manager.io/inject-apiserver-ca" };

int configurations_read(struct kube_client *client, struct arena *arena,
                        const struct kube_kind *kind, const char *ns, const char *name,
                        const cJSON **ret, struct error *err)
{
    cJSON *object = NULL;
    struct kube_name key;

    *ret = NULL;
    if (!kube_name_set(&key, ns, name))
        return error_set(err, ERROR_INVALID, "name '%.64s' is too long", name);
    int r = kube_get(client, arena, kind, &key, &object, err);
    if (r == -ERROR_NOT_FOUND)
        return 0;
    if (r < 0)
        return r;
    *ret = object;
    return 0;
}

static bool is_ours(const struct configurations *self, const cJSON *entry)
{
    const cJSON *config = json_get(entry, "clientConfig");
    const cJSON *service = json_get(config, "service");

    return json_get(config, "url") ||
           (str_equal(json_string(json_get(service, "name"), NULL), self->service) &&
            str_equal(json_string(json_get(service, "namespace"), NULL), self->ns));
}

/* NULL: empty. What is no base64 text is nothing that could be kept. */
static const char *bundle_of(struct arena *arena, const cJSON *entry)
{
    const char *text = json_string(json_path(entry, "clientConfig", "caBundle", NULL), "");

    return *text ? base64_decode(arena, text, strlen(text), NULL) : NULL;
}

static bool is_injected(const cJSON *configuration)
{
    const cJSON *annotations = json_path(configuration, "metadata", "annotations", NULL);

    for (size_t i = 0; i < ARRAY_LEN(INJECTORS); i++) {
        if (json_get(annotations, INJECTORS[i]))
            return true;
    }
    return false;
}

static const char *keep_out(const struct configurations *self, struct arena *arena, size_t ours)
{
    bool there = false;

    for (size_t i = 0; i < CONFIGURATION_KINDS; i++) {
        there = there || self->found[i];
        if (is_injected(self->found[i]))
            return arena_printf(arena, "cert-manager looks after %s '%s'", KINDS[i]->kind,
                                self->name);
    }
    if (ours || self->optional)
        return NULL;
    if (!there)
        return arena_printf(arena, "there is no webhook configuration '%s'", self->name);
    return arena_printf(arena, "no webhook configuration '%s' asks Service '%s/%s'", self->name,
                        self->ns, self->service);
}

int configurations_load(struct configurations *self, struct arena *arena, struct cert_observed *ret,
                        struct error *err)
{
    size_t entries = 0;

    for (size_t i = 0; i < CONFIGURATION_KINDS; i++) {
        int r = configurations_read(self->client, arena, KINDS[i], "", self->name, &self->found[i],
                                    err);
        if (r < 0)
            return r;
        entries += json_len(json_get(self->found[i], "webhooks"));
    }

    const char **bundles = arena_array(arena, const char *, entries + 1);
    size_t count = 0;
    for (size_t i = 0; i < CONFIGURATION_KINDS; i++) {
        json_for_each (entry, json_get(self->found[i], "webhooks")) {
            if (is_ours(self, entry))
                bundles[count++] = bundle_of(arena, entry);
        }
    }
    ret->bundles = bundles;
    ret->bundle_count = count;
    ret->keep_out = keep_out(self, arena, count);
    return 0;
}

/* NULL: it is as it should be. */
static struct json_patch *patch_of(const struct configurations *self, struct arena *arena,
                                   const cJSON *configuration, const char *bundle)
{
    const char *text = base64_encode(arena, bundle, strlen(bundle));
    struct json_patch *patch = guarded_patch_create(arena, configuration, "webhooks");
    bool changed = false;
    unsigned index = 0;

    json_for_each (entry, json_get(configuration, "webhooks")) {
        const char *pointer = arena_printf(arena, "/webhooks/%u/clientConfig/caBundle", index++);
        if (!is_ours(self, entry) || str_equal(bundle_of(arena, entry), bundle))
            continue;
        json_patch_set(patch, pointer, cJSON_CreateString(text));
        changed = true;
    }
    return changed ? patch : NULL;
}

int configurations_save(struct configurations *self, struct arena *arena, const char *bundle,
                        struct error *err)
{
    struct kube_name name;

    if (!kube_name_set(&name, "", self->name))
        return error_set(err, ERROR_INVALID, "name '%.64s' is too long", self->name);
    for (size_t i = 0; i < CONFIGURATION_KINDS; i++) {
        struct json_patch *patch =
            self->found[i] ? patch_of(self, arena, self->found[i], bundle) : NULL;
        if (!patch)
            continue;

        int r = guarded_patch_send(self->client, KINDS[i], &name, patch, err);
        if (r < 0)
            return r;
    }
    return 0;
}

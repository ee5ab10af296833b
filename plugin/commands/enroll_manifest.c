#include "plugin/commands/enroll_manifest.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/api/enrollment.h"
#include "common/api/names.h"
#include "common/base/buf.h"
#include "common/base/digest.h"
#include "common/base/str.h"

#define SALT_BYTES 12
#define MAX_ENV_FILE (64u << 10)

static int read_key(struct arena *arena, const char *path, const char **ret, struct error *err)
{
    char text[ENROLL_MAX_KEY + 2];
    FILE *file = fopen(path, "rbe");

    if (!file)
        return error_set(err, ERROR_INVALID, "--key-file: file '%s': %s", path,
                         strerrordesc_np(errno));
    size_t len = fread(text, 1, sizeof(text) - 1, file);
    bool is_read = !ferror(file);
    (void)fclose(file);
    if (!is_read)
        return error_set(err, ERROR_INVALID, "--key-file: file '%s' cannot be read", path);
    text[len] = '\0';
    text[strcspn(text, "\r\n")] = '\0';
    if (!*text || strlen(text) > ENROLL_MAX_KEY || strlen(text) + 2 < len)
        return error_set(err, ERROR_INVALID,
                         "--key-file: file '%s' must hold one line of 1 to %d characters", path,
                         ENROLL_MAX_KEY);
    for (const char *at = text; *at; at++) {
        if (*at < ' ' || *at > '~')
            return error_set(err, ERROR_INVALID, "--key-file: file '%s' must hold printable ASCII",
                             path);
    }
    *ret = arena_strdup(arena, text);
    return 0;
}

int enroll_key(struct arena *arena, const char *file, const char **ret, struct error *err)
{
    unsigned char bytes[ENROLL_NEW_KEY];
    char *key = arena_alloc(arena, 2 * sizeof(bytes) + 1, 1);

    if (file)
        return read_key(arena, file, ret, err);
    random_bytes(bytes, sizeof(bytes));
    for (size_t i = 0; i < sizeof(bytes); i++)
        (void)snprintf(key + 2 * i, 3, "%02x", bytes[i]);
    *ret = key;
    return 0;
}

static const char *connection(const cJSON *proplet, const char *member)
{
    return json_string(json_path(proplet, "spec", "connectionConfig", member, NULL), "");
}

cJSON *enroll_secret(struct arena *arena, const cJSON *proplet, const char *key)
{
    const cJSON *metadata = json_get(proplet, "metadata");
    const cJSON *ref = json_path(proplet, "spec", "connectionConfig", "clientKeySecretRef", NULL);
    const char *enrollment =
        json_string(json_path(metadata, "labels", LABEL_ENROLLMENT, NULL), NULL);
    cJSON *secret = json_object(arena);

    json_set_string(secret, "apiVersion", "v1");
    json_set_string(secret, "kind", "Secret");

    cJSON *own = json_set_object(secret, "metadata");

    json_set_string(own, "name", json_string(json_get(ref, "name"), ""));
    json_set_string(own, "namespace", json_string(json_get(metadata, "namespace"), ""));
    if (enrollment)
        json_set_string(json_set_object(own, "labels"), LABEL_ENROLLMENT, enrollment);
    json_set_string(secret, "type", "Opaque");
    json_set_string(json_set_object(secret, "data"), ENROLLMENT_SECRET_KEY,
                    base64_encode(arena, key, strlen(key)));
    return secret;
}

const char *enroll_account(struct arena *arena, const char *client_id, const char *key,
                           const void *salt)
{
    unsigned char hash[SHA512_BYTES];

    pbkdf2_sha512(key, salt, SALT_BYTES, 101, hash);
    return arena_printf(arena, "%s:$7$101$%s$%s", client_id, base64_encode(arena, salt, SALT_BYTES),
                        base64_encode(arena, hash, sizeof(hash)));
}

/* As a shell, systemd and a container runtime read it: quotes only where a value needs them. */
static bool add_setting(struct buf *text, const char *name, const char *value)
{
    static const char PLAIN[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_@%+=:,./-[]";
    bool is_plain = !value[strspn(value, PLAIN)];
    bool fits = buf_printf(text, "%s=%s", name, is_plain ? "" : "\"");

    for (; fits && *value; value++)
        fits = buf_printf(text, "%s%c", !is_plain && strchr("\"\\$`", *value) ? "\\" : "", *value);
    return fits && buf_printf(text, "%s\n", is_plain ? "" : "\"");
}

const char *enroll_env_file(struct arena *arena, const cJSON *proplet, const char *key)
{
    const char *client_id = connection(proplet, "clientId");
    const struct {
        const char *name, *value;
    } SETTINGS[] = {
        { "PROPLET_MQTT_ADDRESS", connection(proplet, "mqttAddress") },
        { "PROPLET_DOMAIN_ID", connection(proplet, "domainId") },
        { "PROPLET_TENANT_ID", connection(proplet, "domainId") },
        { "PROPLET_CHANNEL_ID", connection(proplet, "channelId") },
        { "PROPLET_CLIENT_ID", client_id },
        { "PROPLET_ENTITY_ID", client_id },
        { "PROPLET_CLIENT_KEY", key },
        { "PROPLET_API_KEY", key },
    };
    struct buf text = BUF_INIT(MAX_ENV_FILE);
    unsigned char salt[SALT_BYTES];
    bool fits = true;

    random_bytes(salt, sizeof(salt));
    for (size_t i = 0; i < ARRAY_LEN(SETTINGS) && fits; i++)
        fits = add_setting(&text, SETTINGS[i].name, SETTINGS[i].value);
    if (fits && !strchr(client_id, ':')) /* which ends the name of an account */
        fits = buf_printf(&text, "# Account for the password file of mosquitto:\n# %s\n",
                          enroll_account(arena, client_id, key, salt));

    const char *ret = fits ? arena_strdup(arena, buf_string(&text)) : NULL;

    buf_release(&text);
    return ret;
}

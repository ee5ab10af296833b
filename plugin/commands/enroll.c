/* pending, approve, reject, device: devices that wait for approval, and devices that are not set up yet. */
#include <string.h>

#include "common/api/enrollment.h"
#include "common/api/kinds.h"
#include "common/base/str.h"
#include "common/kube/kinds.h"
#include "plugin/cli/objects.h"
#include "plugin/commands/commands.h"
#include "plugin/commands/enroll_manifest.h"

struct settings {
    struct common_flags common;
    struct str_list arguments;
    const char *enrollment;
    const char *name;
    const char *key_file;
    bool new_key;
    bool dry_run;
    const char *broker, *domain, *channel;
};

#define OPTION(flag, kind, member)                                                                 \
    .name = (flag), .type = (kind), .offset = offsetof(struct settings, member)
#define ENROLLMENT_OPTION                                                                          \
    {                                                                                              \
        OPTION("enrollment", OPTION_STRING, enrollment),                                           \
            .value_name = "NAME",                                                                  \
            .help = "Enrollment that lists the device; default is the only one"                    \
    }
#define KEY_OPTIONS                                                                                \
    { OPTION("key-file", OPTION_STRING, key_file), .value_name = "FILE",                           \
      .help = "file with the key of the device, in place of a new one" },                          \
    {                                                                                              \
        OPTION("new-key", OPTION_BOOL, new_key),                                                   \
            .help = "make a random key, which -o env prints; the default"                          \
    }

static const struct option PENDING_OPTIONS[] = { COMMON_FLAGS };
static const struct option REJECT_OPTIONS[] = { ENROLLMENT_OPTION, COMMON_FLAGS };
static const struct option APPROVE_OPTIONS[] = {
    ENROLLMENT_OPTION,
    { OPTION("name", OPTION_STRING, name), .value_name = "NAME",
      .help = "name of the Proplet; default is made of the client id" },
    KEY_OPTIONS,
    { OPTION("dry-run", OPTION_BOOL, dry_run),
      .help = "print the manifest of the Proplet and create nothing" },
    COMMON_FLAGS_WITH(ENV_FORMATS),
};
static const struct option DEVICE_OPTIONS[] = {
    { OPTION("enrollment", OPTION_STRING, enrollment), .value_name = "NAME",
      .help = "Enrollment that has broker, domain and channel" },
    { OPTION("broker", OPTION_STRING, broker), .value_name = "URL",
      .help = "address of the broker, in place of --enrollment" },
    { OPTION("domain", OPTION_STRING, domain), .value_name = "NAME",
      .help = "domain of the device, with --broker" },
    { OPTION("channel", OPTION_STRING, channel), .value_name = "NAME",
      .help = "channel of the device, with --broker; default is NAME" },
    KEY_OPTIONS,
    COMMON_FLAGS_WITH(ENV_FORMATS),
};

/* --- pending ---------------------------------------------------------------------------------- */

static const struct column COLUMNS[] = {
    { .header = "NAMESPACE", .key = "namespace" },
    { .header = "CLIENT-ID", .key = "clientId" },
    { .header = "CHANNEL", .key = "channelId" },
    { .header = "ENROLLMENT", .key = "enrollment" },
    { .header = "FIRST-SEEN", .key = "firstSeen", .type = COLUMN_AGE },
    { .header = "LAST-SEEN", .key = "lastSeen", .type = COLUMN_AGE },
    { .header = "DESCRIPTION", .key = "description" },
    { .header = "TAGS", .key = "tags" },
    { .header = "OS", .key = "os", .wide = true },
    { .header = "HOSTNAME", .key = "hostname", .wide = true },
};

static void add_rows(const cJSON *enrollment, cJSON *rows)
{
    static const char *const MEMBERS[] = { "clientId", "channelId", "firstSeen", "lastSeen" };
    static const char *const SAID[] = { "description", "tags", "os", "hostname" };

    json_for_each (device, json_path(enrollment, "status", "pending", NULL)) {
        cJSON *row = json_add_object(rows);

        json_set_copy(row, "object", json_get(device, "clientId"));
        json_set_copy(row, "namespace", json_path(enrollment, "metadata", "namespace", NULL));
        json_set_copy(row, "enrollment", json_path(enrollment, "metadata", "name", NULL));
        for (size_t i = 0; i < ARRAY_LEN(MEMBERS); i++)
            json_set_copy(row, MEMBERS[i], json_get(device, MEMBERS[i]));
        for (size_t i = 0; i < ARRAY_LEN(SAID); i++) {
            const cJSON *said = json_path(device, "metadata", SAID[i], NULL);

            if (said)
                json_set_copy(row, SAID[i], said);
        }
    }
}

static void print_overflow(const cJSON *enrollment)
{
    if (json_bool(json_path(enrollment, "status", "overflow", NULL), false))
        output_line(stderr, "enrollment/%s lists no more devices than its limit",
                    json_string(json_path(enrollment, "metadata", "name", NULL), ""));
}

static int run_pending(struct session *session, const void *settings UNUSED, struct error *err)
{
    const cJSON *enrollments = NULL;
    int r = session_connect(session, err);
    if (r == 0)
        r = object_list(session, &KIND_ENROLLMENT, object_list_scope(session), NULL, &enrollments,
                        err);
    if (r < 0)
        return r;

    size_t skip = session->flags->all_namespaces ? 0 : 1;
    cJSON *document = output_document(session->arena, "Pending");
    cJSON *rows = json_set_array(document, "devices");

    json_for_each (enrollment, enrollments) {
        add_rows(enrollment, rows);
        print_overflow(enrollment);
    }
    output_rows(&session->output, document, rows, COLUMNS + skip, ARRAY_LEN(COLUMNS) - skip);
    return EXIT_DONE;
}

/* --- one device ------------------------------------------------------------------------------- */

struct found {
    const cJSON *enrollment; /* the object */
    const char *name;
    struct enrollment decoded;
    const struct pending_device *device; /* NULL: it is not listed */
};

static int open_enrollment(const struct session *session, const cJSON *enrollment,
                           const char *client_id, struct found *ret, struct error *err)
{
    *ret =
        (struct found){ .enrollment = enrollment,
                        .name = json_string(json_path(enrollment, "metadata", "name", NULL), "") };
    int r = enrollment_decode(session->arena, enrollment, &ret->decoded, err);
    if (r < 0)
        return r;

    const struct pending_device *items = ret->decoded.status.pending.items;

    for (size_t i = 0; i < ret->decoded.status.pending.len; i++) {
        if (str_equal(items[i].client_id, client_id))
            ret->device = &items[i];
    }
    return 0;
}

/* The Enrollment that is named, else the only one that lists the device. */
static int find_enrollment(struct session *session, const char *name, const char *client_id,
                           struct found *ret, struct error *err)
{
    const cJSON *enrollments = NULL;
    struct found found;
    size_t count = 0;
    int r = object_list(session, &KIND_ENROLLMENT, session->ns, NULL, &enrollments, err);

    json_for_each (enrollment, enrollments) {
        if (r == 0)
            r = open_enrollment(session, enrollment, client_id, &found, err);
        if (r == 0 && (name ? str_equal(found.name, name) : found.device != NULL)) {
            *ret = found;
            count++;
        }
    }
    if (r < 0)
        return r;
    if (name && !count)
        return error_set(err, ERROR_NOT_FOUND, "there is no Enrollment '%.100s' in namespace '%s'",
                         name, session->ns);
    if (count > 1)
        return error_set(err, ERROR_INVALID,
                         "--enrollment: %zu Enrollments list the device '%.100s': name one", count,
                         client_id);
    return count ? 0
                 : error_set(err, ERROR_NOT_FOUND,
                             "no Enrollment in namespace '%s' lists a device '%.100s': "
                             "'" PLUGIN " pending' shows those that do",
                             session->ns, client_id);
}

/* --- reject ----------------------------------------------------------------------------------- */

#define REJECT_TRIES 5

/* Guarded by the resourceVersion, as another user may reject at the same time. */
static int reject_once(struct session *session, const struct settings *settings,
                       const char *client_id, const char **ret_name, struct error *err)
{
    struct found found;
    int r = find_enrollment(session, settings->enrollment, client_id, &found, err);
    if (r < 0)
        return r;

    const cJSON *rejected = json_path(found.enrollment, "spec", "rejected", NULL);
    cJSON *patch = json_object(session->arena);
    struct object_ref ref = { .kind = &KIND_ENROLLMENT };

    *ret_name = found.name;
    json_for_each (item, rejected) {
        if (str_equal(json_string(item, NULL), client_id))
            return 0;
    }
    (void)kube_name_of(found.enrollment, &ref.name);
    json_set_copy(json_set_object(patch, "metadata"), "resourceVersion",
                  json_path(found.enrollment, "metadata", "resourceVersion", NULL));
    cJSON *list = json_set_array(json_set_object(patch, "spec"), "rejected");
    json_for_each (item, rejected)
        json_add(list, json_copy(item));
    json_add_string(list, client_id);
    return object_merge(session, &ref, patch, err);
}

static int run_reject(struct session *session, const void *settings_of, struct error *err)
{
    const struct settings *settings = settings_of;
    cJSON *document = output_document(session->arena, "Reject");
    cJSON *rows = json_set_array(document, "devices");
    int r = session_connect(session, err);

    if (r == 0 && !settings->arguments.len)
        r = error_set(err, ERROR_INVALID, "name a client id");
    for (size_t i = 0; i < settings->arguments.len && r == 0; i++) {
        const char *client_id = settings->arguments.items[i], *name = "";

        r = reject_once(session, settings, client_id, &name, err);
        for (int tries = 1; r == -ERROR_CONFLICT && tries < REJECT_TRIES; tries++)
            r = reject_once(session, settings, client_id, &name, err);
        if (r < 0)
            break;
        cJSON *row = json_add_object(rows);
        json_set_string(row, "object", client_id);
        json_set_string(row, "enrollment", name);
        if (!output_is_structured(&session->output))
            output_line(stdout, session->output.format == OUTPUT_NAME ? "%s" : "%s rejected",
                        client_id);
    }
    if (r == 0 && output_is_structured(&session->output))
        output_whole(&session->output, document);
    return r;
}

/* --- approve, device add ---------------------------------------------------------------------- */

/* Without a Proplet the Secret is of no use. */
static void remove_secret(struct session *session, const cJSON *secret)
{
    struct kube_name name;
    struct error problem;

    if (!kube_name_of(secret, &name))
        return;
    int r = kube_delete(session->client, &KIND_SECRET, &name, kube_uid(secret), NULL, &problem);
    if (r < 0 && r != -ERROR_NOT_FOUND)
        output_line(stderr, "secret/%s was not deleted: %s", name.name, problem.message);
}

static int create_both(struct session *session, const cJSON *proplet, const char *key,
                       struct error *err)
{
    cJSON *secret = NULL, *created = NULL;
    int r = kube_create(session->client, session->arena, &KIND_SECRET,
                        enroll_secret(session->arena, proplet, key), &secret, err);
    if (r == -ERROR_EXISTS)
        return error_set(err, ERROR_EXISTS,
                         "the Secret '%.100s-key' exists: delete it, or choose another name",
                         json_string(json_path(proplet, "metadata", "name", NULL), ""));
    if (r < 0)
        return error_wrap(err, "create the Secret");
    r = kube_create(session->client, session->arena, &KIND_PROPLET, proplet, &created, err);
    if (r >= 0)
        return 0;
    if (r != -ERROR_TIMEOUT) /* then the Proplet may be there */
        remove_secret(session, secret);
    return error_wrap(err, "create the Proplet");
}

static int check_flags(const struct session *session, const struct settings *settings,
                       const char *name, struct error *err)
{
    if (settings->key_file && settings->new_key)
        return error_set(err, ERROR_INVALID, "--key-file and --new-key exclude each other");
    if (settings->dry_run && session->output.format == OUTPUT_ENV)
        return error_set(err, ERROR_INVALID,
                         "--dry-run: the key of an environment file would be stored nowhere");
    if (!str_is_dns_subdomain(name))
        return error_set(err, ERROR_INVALID, "'%.100s' is not a name of an object: use --name",
                         name);
    return 0;
}

static void print_proplet(const struct session *session, const cJSON *proplet)
{
    struct output output = session->output;

    if (output.format != OUTPUT_JSON)
        output.format = OUTPUT_YAML;
    output_whole(&output, proplet);
}

static int print_env(struct session *session, const cJSON *proplet, const char *key,
                     struct error *err)
{
    const char *text = enroll_env_file(session->arena, proplet, key);

    if (!text)
        return error_set(err, ERROR_TOO_LARGE, "the environment file is too long");
    (void)fputs(text, stdout);
    return EXIT_DONE;
}

static int run_approve(struct session *session, const void *settings_of, struct error *err)
{
    const struct settings *settings = settings_of;
    struct arena *arena = session->arena;
    const char *client_id = settings->arguments.len == 1 ? settings->arguments.items[0] : NULL;
    const char *key = NULL;
    struct found found = { 0 };

    if (!client_id)
        return error_set(err, ERROR_INVALID, "name one client id");
    int r = session_connect(session, err);
    if (r == 0)
        r = find_enrollment(session, settings->enrollment, client_id, &found, err);
    if (r < 0)
        return r;
    if (!found.device)
        return error_set(err, ERROR_NOT_FOUND,
                         "Enrollment '%.100s' does not list a device '%.100s'", found.name,
                         client_id);

    const struct enrollment_spec *spec = &found.decoded.spec;
    const char *name =
        settings->name ? settings->name : enrollment_proplet_name(arena, spec, client_id);
    r = check_flags(session, settings, name, err);
    if (r == 0)
        r = enroll_key(arena, settings->key_file, &key, err);
    if (r < 0)
        return r;

    const struct enrollment_identity identity = { .enrollment = found.name,
                                                  .name = name,
                                                  .ns = session->ns,
                                                  .channel_id = found.device->channel_id,
                                                  .client_id = client_id };
    const cJSON *proplet = enrollment_proplet(arena, spec, &identity, true);
    if (settings->dry_run) {
        output_line(stderr,
                    "the Secret '%s-key' with the key '" ENROLLMENT_SECRET_KEY "' is not printed",
                    name);
        print_proplet(session, proplet);
        return EXIT_DONE;
    }
    r = create_both(session, proplet, key, err);
    if (r < 0)
        return r;
    if (session->output.format == OUTPUT_ENV)
        return print_env(session, proplet, key, err);
    if (output_is_structured(&session->output)) {
        cJSON *document = output_document(arena, "Approve");

        json_set_string(document, "object", arena_printf(arena, "proplet/%s", name));
        json_set_string(document, "secret", enrollment_secret_name(arena, name));
        json_set_string(document, "clientId", client_id);
        output_whole(&session->output, document);
        return EXIT_DONE;
    }
    output_line(stdout, session->output.format == OUTPUT_NAME ? "proplet/%s" : "proplet/%s created",
                name);
    return EXIT_DONE;
}

/* Where the device will be: of an Enrollment, or of the flags. */
static int find_place(struct session *session, const struct settings *settings, const char *name,
                      struct enrollment_spec *ret, const char **ret_enrollment, struct error *err)
{
    struct found found;

    if (settings->enrollment) {
        if (settings->broker || settings->domain || settings->channel)
            return error_set(err, ERROR_INVALID,
                             "--enrollment excludes --broker, --domain and --channel");
        int r = find_enrollment(session, settings->enrollment, name, &found, err);
        if (r < 0)
            return r;
        *ret = found.decoded.spec;
        *ret_enrollment = found.name;
        return 0;
    }
    if (!settings->broker || !settings->domain)
        return error_set(err, ERROR_INVALID,
                         "--enrollment, or --broker and --domain, must be given");
    *ret = (struct enrollment_spec){ .mqtt_address = settings->broker,
                                     .domain_id = settings->domain,
                                     .channel_id = settings->channel };
    return 0;
}

static int run_device(struct session *session, const void *settings_of, struct error *err)
{
    const struct settings *settings = settings_of;
    const char *name = settings->arguments.len == 2 ? settings->arguments.items[1] : NULL;
    struct enrollment_identity identity = { .name = name, .client_id = name };
    struct enrollment_spec spec = { 0 };
    const char *key = NULL;

    if (!name || !str_equal(settings->arguments.items[0], "add"))
        return error_set(err, ERROR_INVALID, "the arguments must be add NAME");
    int r = check_flags(session, settings, name, err);
    if (r == 0)
        r = session_connect(session, err);
    if (r == 0)
        r = find_place(session, settings, name, &spec, &identity.enrollment, err);
    if (r == 0)
        r = enroll_key(session->arena, settings->key_file, &key, err);
    if (r < 0)
        return r;

    identity.ns = session->ns;
    identity.channel_id = spec.channel_id ? spec.channel_id : name;
    const cJSON *proplet = enrollment_proplet(session->arena, &spec, &identity, true);
    r = create_both(session, proplet, key, err);
    if (r < 0)
        return r;
    if (!output_is_structured(&session->output))
        return print_env(session, proplet, key, err);
    print_proplet(session, proplet);
    return EXIT_DONE;
}

const struct command COMMAND_PENDING =
    COMMAND("pending", run_pending, struct settings, PENDING_OPTIONS, 0,
            "Lists devices that wait for approval.", EXAMPLES("pending", "pending -A -o wide"));
const struct command COMMAND_APPROVE =
    COMMAND("approve", run_approve, struct settings, APPROVE_OPTIONS, 0,
            "Creates the Proplet of a device that waits, and the Secret with its key.",
            ARGUMENTS(struct settings, arguments, "CLIENT-ID"),
            EXAMPLES("approve sensor-7 --key-file key", "approve sensor-7 --dry-run -o yaml"));
const struct command COMMAND_REJECT =
    COMMAND("reject", run_reject, struct settings, REJECT_OPTIONS, 0,
            "Keeps devices off the list of their Enrollment.",
            ARGUMENTS(struct settings, arguments, "CLIENT-ID..."),
            EXAMPLES("reject sensor-8", "reject sensor-8 sensor-9 --enrollment lab"));
const struct command COMMAND_DEVICE =
    COMMAND("device", run_device, struct settings, DEVICE_OPTIONS, 0,
            "Adds a device that is not set up yet, and prints its environment file.",
            ARGUMENTS(struct settings, arguments, "add NAME"),
            EXAMPLES("device add sensor-7 --enrollment lab >sensor-7.env",
                     "device add sensor-7 --broker mqtts://broker:8883 --domain demo"));

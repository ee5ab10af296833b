#include "plugin/commands/run_manifest.h"

#include <errno.h>
#include <string.h>

#include "common/api/names.h"
#include "common/base/buf.h"
#include "common/base/digest.h"
#include "common/base/str.h"

#define SUFFIX_LEN 5

static int read_module(struct arena *arena, const char *path, const char **ret, struct error *err)
{
    struct buf bytes = BUF_INIT(RUN_MAX_MODULE);
    FILE *file = fopen(path, "rbe");
    char chunk[8192];
    size_t n;
    bool fits = true;

    if (!file)
        return error_set(err, ERROR_INVALID, "--wasm: file '%s': %s", path, strerrordesc_np(errno));
    while (fits && (n = fread(chunk, 1, sizeof(chunk), file)) > 0)
        fits = buf_append(&bytes, chunk, n);
    bool is_read = !ferror(file);
    (void)fclose(file);

    int r = 0;
    if (!is_read)
        r = error_set(err, ERROR_INVALID, "--wasm: file '%s' cannot be read", path);
    else if (!fits)
        r = error_set(err, ERROR_INVALID,
                      "--wasm: file '%s' is larger than %u bytes, which is the limit of spec.file: "
                      "put it on a server and use --image",
                      path, RUN_MAX_MODULE);
    else if (bytes.len < 4 || memcmp(bytes.data, "\0asm", 4) != 0)
        r = error_set(err, ERROR_INVALID, "--wasm: file '%s' is not a WebAssembly module", path);
    else
        *ret = base64_encode(arena, bytes.data, bytes.len);
    buf_release(&bytes);
    return r;
}

/* "key=value" into the object. */
static int set_pairs(struct arena *arena, const char *flag, const struct str_list *pairs,
                     cJSON *object, struct error *err)
{
    for (size_t i = 0; i < pairs->len; i++) {
        const char *equals = strchr(pairs->items[i], '=');

        if (!equals || equals == pairs->items[i])
            return error_set(err, ERROR_INVALID, "%s: a value is not KEY=VALUE", flag);
        json_set_string(object,
                        arena_strndup(arena, pairs->items[i], (size_t)(equals - pairs->items[i])),
                        equals + 1);
    }
    return 0;
}

/* A number keeps its digits; anything else is a string. */
static void add_input(struct arena *arena, cJSON *inputs, const char *text)
{
    const cJSON *value = NULL;

    if (json_parse(arena, text, strlen(text), &value, NULL) == 0 && json_is_number(value))
        json_add(inputs, json_copy(value));
    else
        json_add_string(inputs, text);
}

static void set_strings(cJSON *object, const char *key, const struct str_list *strings)
{
    if (!strings->len)
        return;

    cJSON *array = json_set_array(object, key);
    for (size_t i = 0; i < strings->len; i++)
        json_add_string(array, strings->items[i]);
}

static int set_selector(struct arena *arena, const struct run_flags *flags, cJSON *spec,
                        struct error *err)
{
    if (!flags->on && !flags->labels.len && !flags->capabilities.len)
        return 0;

    cJSON *selector = json_set_object(spec, "propletSelector");
    if (flags->on)
        json_set_string(selector, "propletId", flags->on);
    set_strings(selector, "matchCapabilities", &flags->capabilities);
    return flags->labels.len ? set_pairs(arena, "--selector", &flags->labels,
                                         json_set_object(selector, "matchLabels"), err)
                             : 0;
}

static int set_spec(struct arena *arena, const struct run_flags *flags, cJSON *spec,
                    struct error *err)
{
    if (flags->image)
        json_set_string(spec, "imageUrl", flags->image);
    if (flags->inputs.len) {
        cJSON *inputs = json_set_array(spec, "inputs");

        for (size_t i = 0; i < flags->inputs.len; i++)
            add_input(arena, inputs, flags->inputs.items[i]);
    }
    json_set_string(spec, "preferredPropletType", flags->type);
    if (flags->retries != RUN_NO_RETRIES)
        json_set_int(spec, "backoffLimit", flags->retries);
    if (flags->deadline_ms)
        json_set_int(spec, "activeDeadlineSeconds", (flags->deadline_ms + 999) / 1000);
    if (flags->broadcast)
        json_set_bool(spec, "broadcast", true);
    json_set_string(spec, "schedule", flags->schedule);
    if (flags->schedule)
        json_set_bool(spec, "isRecurring", true);
    json_set_string(spec, "timezone", flags->timezone);
    if (flags->priority != RUN_NO_PRIORITY)
        json_set_int(spec, "priority", flags->priority);

    int r = set_selector(arena, flags, spec, err);
    if (r == 0 && flags->env.len)
        r = set_pairs(arena, "--env", &flags->env, json_set_object(spec, "env"), err);
    return r;
}

/* "add" of "build/add.wasm"; "task" where there is nothing before the dot. */
static const char *module_name(struct arena *arena, const struct run_flags *flags)
{
    const char *path = flags->wasm ? flags->wasm : flags->image;
    const char *slash = strrchr(path, '/');
    const char *base = slash ? slash + 1 : path;
    size_t len = strcspn(base, ".:@");

    return len ? arena_strndup(arena, base, len) : "task";
}

int run_manifest(struct arena *arena, const struct run_flags *flags, const char *ns, cJSON **ret,
                 struct error *err)
{
    const char *module = NULL;

    if (!flags->wasm == !flags->image)
        return error_set(err, ERROR_INVALID, "exactly one of --wasm and --image must be given");
    if (flags->names.len > 1)
        return error_set(err, ERROR_INVALID, "a Task has one name");
    if (flags->names.len && !str_is_dns_subdomain(flags->names.items[0]))
        return error_set(err, ERROR_INVALID, "'%.100s' is not a name of an object",
                         flags->names.items[0]);
    if (flags->timezone && !flags->schedule)
        return error_set(err, ERROR_INVALID, "--timezone: only with --schedule");
    int r = flags->wasm ? read_module(arena, flags->wasm, &module, err) : 0;
    if (r < 0)
        return r;

    cJSON *task = json_object(arena);
    const char *base = module_name(arena, flags);
    char uuid[UUID_LEN];
    const char *name = flags->names.len ? flags->names.items[0]
                                        : child_name(arena, NAME_MAX_POD_OWNER, "%s-%.*s", base,
                                                     SUFFIX_LEN, uuid_random(uuid));
    json_set_string(task, "apiVersion", API_VERSION);
    json_set_string(task, "kind", "Task");
    cJSON *metadata = json_set_object(task, "metadata");
    json_set_string(metadata, "name", name);
    json_set_string(metadata, "namespace", ns);
    cJSON *spec = json_set_object(task, "spec");
    json_set_string(spec, "name", name);
    if (module)
        json_set_string(spec, "file", module);
    /* a random name is no export */
    json_set_string(spec, "functionName",
                    flags->function || flags->names.len ? flags->function : base);
    *ret = task;
    return set_spec(arena, flags, spec, err);
}

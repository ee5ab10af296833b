#include <ctype.h>
#include <pthread.h>
#include <string.h>

#include "common/api/kinds.h"
#include "common/base/str.h"
#include "webhook/admission.h"

/* Of the array, which lives as long as the process. */
static struct arena *arena;
static struct admission_hook *hooks;
static size_t hook_count;

/* "/<verb>-<group>-<version>-<kind>", all with dashes and in lower case: as kubebuilder names them. */
static const char *path_of(const char *verb, const struct kube_kind *kind)
{
    char *path = arena_printf(arena, "/%s-%s-%s-%s", verb, kind->group, kind->version, kind->kind);

    for (char *at = path; *at; at++)
        *at = *at == '.' ? '-' : (char)tolower((unsigned char)*at);
    return path;
}

/* The kind's, in both objects of a review. */
static const char *const *texts_of(const struct kube_kind *kind)
{
    size_t len = 0;

    while (kind->texts && kind->texts[len])
        len++;

    const char **texts = arena_array(arena, const char *, 2 * len + 1);
    for (size_t i = 0; i < len; i++) {
        texts[2 * i] = arena_printf(arena, "request.object.%s", kind->texts[i]);
        texts[2 * i + 1] = arena_printf(arena, "request.oldObject.%s", kind->texts[i]);
    }
    return texts;
}

static struct admission_hook *add_hook(const char *verb, const struct admission *admission)
{
    struct admission_hook *hook = &hooks[hook_count++];

    *hook = (struct admission_hook){ .path = path_of(verb, admission->kind),
                                     .admission = admission,
                                     .texts = texts_of(admission->kind) };
    return hook;
}

static void make_hooks(void)
{
    size_t count = 0;

    while (ADMISSION[count].kind)
        count++;
    arena = arena_create();
    hooks = arena_array(arena, struct admission_hook, 2 * count + 1);
    for (size_t i = 0; i < count; i++) {
        if (ADMISSION[i].apply_defaults)
            add_hook("mutate", &ADMISSION[i]);
    }
    for (size_t i = 0; i < count; i++)
        add_hook("validate", &ADMISSION[i])->schema = admission_schema(arena, &ADMISSION[i]);
}

const struct admission_hook *admission_hooks(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, make_hooks);
    return hooks;
}

const struct admission_hook *admission_hook_find(const char *path)
{
    for (const struct admission_hook *hook = admission_hooks(); hook->path; hook++) {
        if (str_equal(hook->path, path))
            return hook;
    }
    return NULL;
}

#include "controller/machine/machine_node.h"

#include <string.h>

#include "common/base/str.h"
#include "common/json/jsonpatch.h"
#include "common/kube/conditions.h"

static const char *const RECLAIM[] = { NODE_ANNOTATION_RECLAIM, NODE_ANNOTATION_RECLAIM_REASON,
                                       NODE_ANNOTATION_RECLAIM_AT };

const char *machine_node_name(const cJSON *machine)
{
    return json_string(json_path(machine, "status", "nodeRef", "name", NULL), NULL);
}

static const char *annotation(const cJSON *node, const char *name)
{
    return json_string(json_path(node, "metadata", "annotations", name, NULL), NULL);
}

static bool names_another(const cJSON *node, const cJSON *machine)
{
    static const struct {
        const char *annotation, *part, *member; /* of the Machine */
    } NAMES[] = {
        { NODE_ANNOTATION_MACHINE, "metadata", "name" },
        { NODE_ANNOTATION_MACHINE_NS, "metadata", "namespace" },
        { NODE_ANNOTATION_CLUSTER, "spec", "clusterName" },
    };

    for (size_t i = 0; i < ARRAY_LEN(NAMES); i++) {
        const char *name = annotation(node, NAMES[i].annotation);

        if (name &&
            !str_equal(name,
                       json_string(json_path(machine, NAMES[i].part, NAMES[i].member, NULL), "")))
            return true;
    }
    return false;
}

enum machine_node machine_node_of(const cJSON *machine, const cJSON *node)
{
    const char *wanted = json_string(json_path(machine, "spec", "providerID", NULL), "");
    const char *name = machine_node_name(machine);

    if (str_is_empty(name) || !node ||
        !str_equal(json_string(json_path(node, "metadata", "name", NULL), ""), name))
        return MACHINE_NODE_NONE;
    if (str_is_empty(wanted) || names_another(node, machine) ||
        !str_equal(json_string(json_path(node, "spec", "providerID", NULL), ""), wanted))
        return MACHINE_NODE_ELSEWHERE;
    return MACHINE_NODE_HERE;
}

bool node_is_ready(const cJSON *node)
{
    return condition_is(json_path(node, "status", "conditions", NULL), "Ready", CONDITION_TRUE);
}

bool node_is_reclaimed(const cJSON *node)
{
    return str_equal(annotation(node, NODE_ANNOTATION_RECLAIM), "true");
}

bool node_has_reclaim_annotations(const cJSON *node)
{
    for (size_t i = 0; i < ARRAY_LEN(RECLAIM); i++) {
        if (annotation(node, RECLAIM[i]))
            return true;
    }
    return false;
}

/* --- patches ----------------------------------------------------------------------------------- */

static struct json_patch *begin(struct arena *arena, const cJSON *node)
{
    static const char *const TESTED[] = { "uid", "resourceVersion" };
    struct json_patch *patch = json_patch_create(arena, node);

    for (size_t i = 0; i < ARRAY_LEN(TESTED); i++)
        json_patch_test(patch, arena_printf(arena, "/metadata/%s", TESTED[i]),
                        json_copy(json_path(node, "metadata", TESTED[i], NULL)));
    return patch;
}

static const char *pointer_of(struct arena *arena, const char *name)
{
    return arena_printf(arena, "/metadata/annotations/%s", json_pointer_escape(arena, name));
}

const cJSON *node_cordon(struct arena *arena, const cJSON *node)
{
    if (json_bool(json_path(node, "spec", "unschedulable", NULL), false))
        return NULL;

    struct json_patch *patch = begin(arena, node);

    json_patch_set(patch, "/spec/unschedulable", cJSON_CreateTrue());
    json_patch_set(patch, pointer_of(arena, NODE_ANNOTATION_CORDONED), cJSON_CreateString("true"));
    return json_patch_operations(patch);
}

const cJSON *node_uncordon(struct arena *arena, const cJSON *node)
{
    struct json_patch *patch = begin(arena, node);

    if (!annotation(node, NODE_ANNOTATION_CORDONED))
        return NULL;
    json_patch_remove(patch, "/spec/unschedulable");
    json_patch_remove(patch, pointer_of(arena, NODE_ANNOTATION_CORDONED));
    return json_patch_operations(patch);
}

const cJSON *node_clear_reclaim(struct arena *arena, const cJSON *node)
{
    struct json_patch *patch = begin(arena, node);

    for (size_t i = 0; i < ARRAY_LEN(RECLAIM); i++)
        json_patch_remove(patch, pointer_of(arena, RECLAIM[i]));
    return json_patch_operations(patch);
}

const cJSON *node_set_taints(struct arena *arena, const cJSON *node, const struct taint_plan *plan)
{
    struct json_patch *patch = begin(arena, node);
    const char *pointer = pointer_of(arena, NODE_ANNOTATION_TAINTS);

    if (plan->conflicts)
        return NULL;
    if (plan->taints)
        json_patch_set(patch, "/spec/taints", json_copy(plan->taints));
    if (plan->annotation_changes && !plan->applied.len)
        json_patch_remove(patch, pointer);
    else if (plan->annotation_changes)
        json_patch_set(patch, pointer, cJSON_CreateString(taints_text(arena, &plan->applied)));
    return json_patch_operations(patch);
}

bool node_has_agent(const cJSON *node)
{
    return json_path(node, "metadata", "labels", NODE_LABEL_AGENT, NULL) != NULL;
}

const cJSON *node_set_agent(struct arena *arena, const cJSON *node, bool wanted)
{
    struct json_patch *patch = begin(arena, node);
    const char *pointer =
        arena_printf(arena, "/metadata/labels/%s", json_pointer_escape(arena, NODE_LABEL_AGENT));

    if (wanted == node_has_agent(node))
        return NULL;
    if (wanted)
        json_patch_set(patch, pointer, cJSON_CreateString("enabled"));
    else
        json_patch_remove(patch, pointer);
    return json_patch_operations(patch);
}

/* --- the reclaim agent ------------------------------------------------------------------------ */

/* The escape sequences of JSON are also those of a basic string of TOML, but for the one of DEL, which JSON does not
 * need. */
static const char *toml_list(struct arena *arena, const struct str_list *strings)
{
    cJSON *array = json_array(arena);

    for (size_t i = 0; i < strings->len; i++)
        json_add_string(array, strings->items[i]);

    const char *text = json_text(arena, array, NULL);
    for (const char *at; (at = strchr(text, '\x7f'));)
        text = arena_printf(arena, "%.*s\\u007f%s", (int)(at - text), text, at + 1);
    return text;
}

const char *node_reclaim_config(struct arena *arena, const struct str_list *commands)
{
    const char *list = toml_list(arena, commands);

    return arena_printf(arena,
                        "match_commands = %s\nmatch_argv_substrings = %s\npoll_interval_ms = 250\n",
                        list, list);
}

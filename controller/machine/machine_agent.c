/*
 * Tells the reclaim agent of a Node which commands it is to look for: a ConfigMap in the namespace of the controller,
 * and a label of the Node.
 *
 * The ConfigMap is there before the label, and goes before it: a Node without the label has none of ours. Its owner is
 * the Node, so it also goes with a Node that another client deletes.
 */
#include "common/api/kinds.h"
#include "common/api/names.h"
#include "common/base/log.h"
#include "common/base/str.h"
#include "common/kube/guarded_patch.h"
#include "common/kube/kinds.h"
#include "controller/events/transitions.h"
#include "controller/machine/machine.h"

#define CONFIG_PREFIX "reclaim-agent-"
#define CONFIG_FILE "reclaim.toml"

static const char *node_name(const struct machine_turn *turn)
{
    return json_string(json_path(turn->node, "metadata", "name", NULL), "");
}

static cJSON *make_config(const struct machine_turn *turn, const struct kube_name *name,
                          const char *text)
{
    cJSON *object = json_object(turn->rc->arena), *metadata = json_set_object(object, "metadata");
    cJSON *owner = json_add_object(json_set_array(metadata, "ownerReferences"));

    json_set_string(object, "apiVersion", "v1");
    json_set_string(object, "kind", "ConfigMap");
    json_set_string(metadata, "name", name->name);
    json_set_string(metadata, "namespace", name->ns);
    json_set_string(json_set_object(metadata, "labels"), MACHINE_LABEL,
                    label_value(turn->rc->arena, turn->rc->name.name));
    json_set_string(owner, "apiVersion", "v1");
    json_set_string(owner, "kind", "Node");
    json_set_string(owner, "name", node_name(turn));
    json_set_string(owner, "uid", kube_uid(turn->node));
    json_set_string(json_set_object(object, "data"), CONFIG_FILE, text);
    return object;
}

/* *ret NULL: there is none. */
static int read_config(struct machine_turn *turn, const struct kube_name *name, cJSON **ret,
                       struct error *err)
{
    cJSON *json = NULL;
    int r = kube_get(turn->rc->client, turn->rc->arena, &KIND_CONFIGMAP, name, &json, err);

    *ret = r == 0 ? json : NULL;
    return r == -ERROR_NOT_FOUND ? 0 : r;
}

static int write_config(struct machine_turn *turn, const struct kube_name *name, const cJSON *is,
                        struct error *err)
{
    struct arena *arena = turn->rc->arena;
    const char *text = node_reclaim_config(arena, &turn->spec.kill_if_commands);
    cJSON *reply = NULL;

    if (!is)
        return kube_create(turn->rc->client, arena, &KIND_CONFIGMAP, make_config(turn, name, text),
                           &reply, err);
    if (str_equal(json_string(json_path(is, "data", CONFIG_FILE, NULL), ""), text))
        return 0;

    struct json_patch *patch = guarded_patch_create(arena, is, "data");
    cJSON *data = cJSON_CreateObject();
    json_set_string(data, CONFIG_FILE, text);
    json_patch_set(patch, "/data", data);
    return guarded_patch_send(turn->rc->client, &KIND_CONFIGMAP, name, patch, err);
}

static int keep_config(struct machine_turn *turn, const struct kube_name *name, bool wanted,
                       struct error *err)
{
    cJSON *is = NULL;
    int r = read_config(turn, name, &is, err);

    if (r < 0)
        return r;
    if (is && machine_claim_of(is, kube_uid(turn->node)) == MACHINE_CLAIM_TAKEN)
        return wanted ? error_set(err, ERROR_INVALID, "ConfigMap '%s' belongs to another owner",
                                  name->name)
                      : 0;
    if (wanted)
        return write_config(turn, name, is, err);
    if (!is)
        return 0;
    r = kube_delete(turn->rc->client, &KIND_CONFIGMAP, name, kube_uid(is), NULL, err);
    return r == -ERROR_NOT_FOUND ? 0 : r; /* a conflict: the next turn looks again */
}

/* Only a person can help, and nothing else of the machine waits for it. */
static void tell_failed(struct machine_turn *turn, const char *why)
{
    log_warn("reclaim agent not configured", "uid", turn->object->uid, "error", why, NULL);
    events_emit_note(turn->rc->events, &KIND_SCHEDULEDMACHINE, turn->object,
                     &MACHINE_EVENT_NO_AGENT,
                     arena_printf(turn->rc->arena, "%s: %.512s", MACHINE_EVENT_NO_AGENT.note, why));
}

int machine_keep_agent(struct machine_turn *turn, bool wanted, const cJSON **ret_patch,
                       struct error *err)
{
    struct kube_name name;
    struct error failure = { 0 };
    const char *text = arena_printf(turn->rc->arena, CONFIG_PREFIX "%s", node_name(turn));

    if (!wanted && !node_has_agent(turn->node))
        return 0;
    int r = kube_name_set(&name, turn->deps->ns, text)
                ? keep_config(turn, &name, wanted, &failure)
                : error_set(&failure, ERROR_INVALID, "the name of the Node is too long");
    if (machine_is_refusal(r)) {
        tell_failed(turn, failure.message);
        if (wanted)
            return 0;
    } else if (r < 0) {
        *err = failure;
        return r;
    }

    const cJSON *patch = node_set_agent(turn->rc->arena, turn->node, wanted);
    r = machine_patch_node(turn, patch, err);
    if (r == 0 && ret_patch)
        *ret_patch = patch;
    return r;
}

#include "standalone/api/selection.h"

#include "common/base/str.h"
#include "standalone/api/options.h"
#include "standalone/api/stored.h"

int selection_read(struct api_call *call, struct selection *ret)
{
    const char *why;
    struct error err;

    ret->resource = call->resource;

    int r = label_selector_parse(call->arena, call->query.label_selector, &ret->labels, &why);
    bool readable = r == 0;

    if (r == 0) {
        r = field_selector_parse(call->arena, &call->resource->kind, call->query.field_selector,
                                 &ret->fields, &err);
        why = err.message;
    }
    /* What can be read is refused for other options first. */
    if (r < 0 && readable)
        readable = !str_has_prefix(why, FIELD_SELECTOR_UNREADABLE);
    if (readable && options_check_list(call, call->query.watch) < 0)
        return -1;
    return r < 0 ? call_fail(call, 400, "BadRequest", "%s", why) : 0;
}

bool selection_is_empty(const struct selection *selection)
{
    return label_selector_is_empty(selection->labels) && field_selector_is_empty(selection->fields);
}

bool selection_matches(const struct selection *selection, const cJSON *object)
{
    return label_selector_matches(selection->labels, object) &&
           field_selector_matches(selection->fields, object);
}

int selection_takes(const struct selection *selection, struct arena *arena,
                    const struct kv_value *value, uint64_t revision, cJSON **ret_tree,
                    struct error *err)
{
    if (selection_is_empty(selection))
        return 1;

    int r = stored_tree(arena, selection->resource, value, revision, ret_tree, err);
    return r < 0 ? r : selection_matches(selection, *ret_tree);
}

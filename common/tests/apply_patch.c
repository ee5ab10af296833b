#include "common/tests/apply_patch.h"

cJSON *apply_merge_patch(cJSON *document, const cJSON *patch)
{
    if (!cJSON_IsObject(patch)) {
        cJSON_Delete(document);
        return json_copy(patch);
    }
    if (!cJSON_IsObject(document)) {
        cJSON_Delete(document);
        document = cJSON_CreateObject();
    }
    json_for_each (member, patch) {
        cJSON *old = (cJSON *)(uintptr_t)json_get(document, member->string);
        if (cJSON_IsNull(member)) {
            json_remove(document, member->string);
        } else {
            if (old)
                cJSON_DetachItemViaPointer(document, old);
            json_set(document, member->string, apply_merge_patch(old, member));
        }
    }
    return document;
}

#include "common/kube/path.h"

#include <string.h>

static bool is_unreserved(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_' || c == '~';
}

static bool append_encoded(struct buf *path, const char *value)
{
    for (const char *c = value; *c; c++) {
        bool fits = is_unreserved(*c) ? buf_append(path, c, 1)
                                      : buf_printf(path, "%%%02X", (unsigned)(unsigned char)*c);
        if (!fits)
            return false;
    }
    return true;
}

bool kube_path_collection(struct buf *path, const struct kube_kind *kind, const char *ns)
{
    bool fits = *kind->group ? buf_printf(path, "/apis/%s/%s", kind->group, kind->version)
                             : buf_printf(path, "/api/%s", kind->version);
    if (fits && kind->namespaced && ns && *ns)
        fits = buf_append_string(path, "/namespaces/") && append_encoded(path, ns);
    return fits && buf_printf(path, "/%s", kind->plural);
}

bool kube_path_object(struct buf *path, const struct kube_kind *kind, const struct kube_name *name)
{
    return kube_path_collection(path, kind, name->ns) && buf_append_string(path, "/") &&
           append_encoded(path, name->name);
}

bool kube_path_query(struct buf *path, const char *key, const char *value)
{
    const char *separator = strchr(buf_string(path), '?') ? "&" : "?";

    return buf_printf(path, "%s%s=", separator, key) && append_encoded(path, value);
}

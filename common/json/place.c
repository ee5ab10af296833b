#include "common/json/place.h"

#include "common/base/buf.h"

bool json_place_write(const struct json_place *place, struct buf *buf)
{
    if (place->parent && !json_place_write(place->parent, buf))
        return false;
    if (!place->name)
        return buf_printf(buf, "[%zu]", place->index);
    return buf_printf(buf, "%s%s", buf->len ? "." : "", place->name);
}

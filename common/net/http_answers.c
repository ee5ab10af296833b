/* Room for the bytes of answers. */
#include "common/base/str.h"
#include "common/net/http_internal.h"

/* Of the room one client has so much. An answer that is larger counts as so much, and is the only such one: whoever
 * reads it slowly is in the way of nothing but its like. */
static size_t part_of(const struct http_server *server)
{
    return server->options.max_answers / 2;
}

static size_t at_most(size_t len, size_t max)
{
    return len < max ? len : max;
}

/* Those that nobody knows are one client. */
static bool is_same_client(const struct http_connection *a, const struct http_connection *b)
{
    return a->who && b->who ? str_equal(a->who, b->who) : a->who == b->who;
}

struct held {
    size_t all, of_client;
    bool is_any_large; /* larger than a part */
};

/* By the others. */
static struct held held_beside(const struct http_connection *own)
{
    const struct http_server *server = own->daemon->server;
    size_t part = part_of(server);
    struct held held = { 0 };

    for (const struct http_connection *c = server->connections; c; c = c->next) {
        size_t len = c == own ? 0 : c->answer_bytes;

        if (!len)
            continue;
        held.all += at_most(len, part);
        held.of_client += is_same_client(c, own) ? at_most(len, part) : 0;
        held.is_any_large = held.is_any_large || len > part;
    }
    return held;
}

static bool fits(const struct http_connection *connection, size_t len)
{
    const struct http_server *server = connection->daemon->server;
    const struct held held = held_beside(connection);
    size_t part = part_of(server), counts = at_most(len, part);

    if (len > part && held.is_any_large)
        return false;
    return held.of_client + counts <= part && held.all + counts <= server->options.max_answers;
}

bool http_answer_take(struct http_connection *connection, size_t len, bool is_owed)
{
    const struct http_server_options *options = &connection->daemon->server->options;

    if (!options->max_answers)
        return true;
    if (len <= options->small_answer)
        len = 0;
    if (len > connection->answer_bytes && !is_owed && !connection->is_unlimited &&
        !fits(connection, len))
        return false;
    connection->answer_bytes = len;
    return true;
}

bool http_answer_is_welcome(const struct http_connection *connection)
{
    const struct http_server *server = connection->daemon->server;

    return !server->options.max_answers || connection->is_unlimited ||
           held_beside(connection).of_client < part_of(server);
}

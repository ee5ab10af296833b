#include "controller/tests/vmafx_peer.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

/* Written by hand from the description of the wire format, so that it does not share the decoder's mistakes. */
static size_t put_varint(char *to, uint64_t value)
{
    size_t len = 0;

    for (; value >= 0x80; value >>= 7)
        to[len++] = (char)(value | 0x80);
    to[len++] = (char)value;
    return len;
}

static size_t put_text(char *to, unsigned field, const char *text)
{
    size_t len;

    if (!text)
        return 0;
    len = put_varint(to, field << 3 | 2);
    len += put_varint(to + len, strlen(text));
    memcpy(to + len, text, strlen(text));
    return len + strlen(text);
}

size_t vmafx_peer_encode(const struct vmafx_peer_job *job, char ret[static VMAFX_PEER_MAX])
{
    size_t len = put_text(ret, 1, "id");

    ck_assert_uint_le((job->error ? strlen(job->error) : 0) + (job->node ? strlen(job->node) : 0),
                      VMAFX_PEER_MAX - 64);
    len += put_varint(ret + len, 2 << 3);
    len += put_varint(ret + len, (uint64_t)(int64_t)job->status);
    len += put_text(ret + len, 3, "a field that is skipped");
    len += put_text(ret + len, 5, job->node);
    len += put_text(ret + len, 6, job->error);
    len += put_varint(ret + len, 8 << 3);
    len += put_varint(ret + len, (uint64_t)job->updated_at_s);
    len += put_varint(ret + len, 9 << 3 | 1);
    memcpy(ret + len, &job->score, sizeof(job->score)); /* little endian, as this machine is */
    return len + sizeof(job->score);
}

static void answer(void *ctx, unsigned number UNUSED, const void *body, size_t len,
                   struct h2_reply *ret)
{
    struct vmafx_peer *peer = ctx;
    const char *id = (const char *)body + 7; /* prefix, tag, length */
    size_t message = vmafx_peer_encode(&peer->job, peer->frame + 5);

    ck_assert_uint_ge(len, 7);
    (void)snprintf(peer->asked, sizeof(peer->asked), "%.*s", (int)(len - 7), id);
    peer->frame[3] = (char)(message >> 8);
    peer->frame[4] = (char)message;
    (void)snprintf(peer->lines, sizeof(peer->lines), "grpc-status: %d\n", peer->grpc_status);
    *ret = (struct h2_reply){ .manner = peer->manner,
                              .headers = ":status: 200\ncontent-type: application/grpc\n",
                              .body = peer->frame,
                              .len = peer->grpc_status ? 0 : message + 5,
                              .trailers = peer->lines };
}

void vmafx_peer_start(struct vmafx_peer *peer)
{
    peer->server = h2_server_start(answer, peer);
}

void vmafx_peer_stop(struct vmafx_peer *peer)
{
    h2_server_stop(peer->server);
}

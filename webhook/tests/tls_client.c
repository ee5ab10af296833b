#include "webhook/tests/tls_client.h"

#include <stdlib.h>
#include <string.h>

#include <curl/curl.h>

#include "common/base/alloc.h"
#include "common/base/buf.h"
#include "common/base/str.h"

#define MAX_REPLY (8u << 20)
#define TIMEOUT_S 120L

struct tls_client {
    CURL *easy;
    unsigned connections;
};

struct tls_client *tls_client_create(const char *ca)
{
    struct tls_client *client = xcalloc(1, sizeof(*client));

    client->easy = curl_easy_init();
    curl_easy_setopt(client->easy, CURLOPT_CAINFO, ca);
    curl_easy_setopt(client->easy, CURLOPT_CERTINFO, 1L);
    curl_easy_setopt(client->easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(client->easy, CURLOPT_TIMEOUT, TIMEOUT_S);
    curl_easy_setopt(client->easy, CURLOPT_IPRESOLVE, CURL_IPRESOLVE_V4);
    return client;
}

void tls_client_destroy(struct tls_client *client)
{
    if (!client)
        return;
    curl_easy_cleanup(client->easy);
    free(client);
}

static size_t keep(char *data, size_t size, size_t count, void *ctx)
{
    return buf_append(ctx, data, size * count) ? size * count : 0;
}

/* Of the first certificate: "Subject:CN = a". */
static const char *subject_of(CURL *easy)
{
    struct curl_certinfo *info = NULL;

    if (curl_easy_getinfo(easy, CURLINFO_CERTINFO, &info) != CURLE_OK || !info ||
        info->num_of_certs < 1)
        return "";
    for (const struct curl_slist *line = info->certinfo[0]; line; line = line->next) {
        if (str_has_prefix(line->data, "Subject:"))
            return line->data + strlen("Subject:");
    }
    return "";
}

struct tls_reply tls_client_post(struct tls_client *client, struct arena *arena, unsigned port,
                                 const char *path, const char *body, size_t len)
{
    CLEANUP(buf_releasep) struct buf text = BUF_INIT(MAX_REPLY);
    struct curl_slist *headers = curl_slist_append(NULL, "Content-Type: application/json");
    struct tls_reply reply = { .body = "", .content_type = "", .subject = "" };
    long status = 0;
    long connections = 0;
    const char *type = NULL;

    headers = curl_slist_append(headers, "Expect:");
    curl_easy_setopt(client->easy, CURLOPT_URL,
                     arena_printf(arena, "https://localhost:%u%s", port, path));
    curl_easy_setopt(client->easy, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(client->easy, CURLOPT_POSTFIELDS, body);
    curl_easy_setopt(client->easy, CURLOPT_POSTFIELDSIZE, (long)len);
    curl_easy_setopt(client->easy, CURLOPT_WRITEFUNCTION, keep);
    curl_easy_setopt(client->easy, CURLOPT_WRITEDATA, &text);

    if (curl_easy_perform(client->easy) == CURLE_OK) {
        curl_easy_getinfo(client->easy, CURLINFO_RESPONSE_CODE, &status);
        curl_easy_getinfo(client->easy, CURLINFO_CONTENT_TYPE, &type);
        curl_easy_getinfo(client->easy, CURLINFO_NUM_CONNECTS, &connections);
        reply.status = (int)status;
        reply.content_type = arena_strdup(arena, type ? type : "");
        reply.body = arena_strndup(arena, buf_string(&text), text.len);
        reply.body_len = text.len;
        reply.subject = arena_strdup(arena, connections ? subject_of(client->easy) : "");
        client->connections += (unsigned)connections;
    }
    curl_slist_free_all(headers);
    return reply;
}

unsigned tls_client_connections(const struct tls_client *client)
{
    return client->connections;
}

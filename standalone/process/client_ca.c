/* The authority of users' certificates. It is another one than the server's: what lets in is signed by
 * this one alone. */
#include <string.h>

#include "certs/file_set.h"
#include "certs/make.h"
#include "common/base/certificate.h"
#include "common/base/digest.h"
#include "standalone/process/data_dir.h"
#include "standalone/server/users.h"

#define BEGIN "-----BEGIN CERTIFICATE-----"

/* 1: there is none yet. */
static int read_pair(struct arena *arena, const char *folder, struct cert_pair *ret,
                     struct error *err)
{
    int r = data_dir_read(arena, data_dir_path(arena, folder, "ca.crt"), &ret->cert, err);

    if (r == -ERROR_NOT_FOUND)
        return 1; /* the key is written before it */
    return r < 0 ? r : data_dir_read(arena, data_dir_path(arena, folder, "ca.key"), &ret->key, err);
}

/* Another one would lock them out. Users that cannot be read are others' to tell. */
static int check_nobody_needs_it(struct arena *arena, const char *directory, struct error *err)
{
    struct error unread = { 0 };
    struct users *users;
    const char *text;

    if (data_dir_read(arena, data_dir_path(arena, directory, DATA_DIR_USERS), &text, &unread) < 0 ||
        users_parse(text, &users, &unread) < 0)
        return 0;

    bool needed = users_have_certificates(users);

    users_unref(users);
    if (!needed)
        return 0;
    return error_set(err, ERROR_INVALID,
                     "'%s/" DATA_DIR_CLIENT_CA "/ca.crt' is missing and users have certificates of "
                     "it: restore it and ca.key, or remove their lines from " DATA_DIR_USERS,
                     directory);
}

static int make_pair(struct arena *arena, const char *folder, const struct clock *clock,
                     struct cert_pair *ret, struct error *err)
{
    int r = cert_make_ca(arena, clock_wall_us(clock), DATA_DIR_CA_LIFETIME_US, ret, err);

    if (r == 0)
        r = data_dir_write(arena, data_dir_path(arena, folder, "ca.key"), ret->key, err);
    if (r == 0)
        r = data_dir_write(arena, data_dir_path(arena, folder, "ca.crt"), ret->cert, err);
    return r;
}

int data_dir_keep_client_ca(struct arena *arena, const char *directory, const struct clock *clock,
                            struct cert_pair *ret, struct error *err)
{
    const char *folder = data_dir_path(arena, directory, DATA_DIR_CLIENT_CA);
    struct certificate_times times;
    int lock;

    int r = file_set_lock(folder, &lock, err); /* and makes it */
    if (r < 0)
        return r;
    r = read_pair(arena, folder, ret, err);
    if (r > 0) {
        r = check_nobody_needs_it(arena, directory, err);
        if (r == 0)
            r = make_pair(arena, folder, clock, ret, err);
    } else if (r == 0 && certificate_read_times(ret->cert, &times, NULL) < 0) {
        r = error_set(err, ERROR_INVALID,
                      "'%s/ca.crt' cannot be read as a certificate: restore it from a copy",
                      folder);
    }
    file_set_unlock(lock);
    return r;
}

/* PEM is base64 of DER, in lines between two others. */
static const char *hash_of(struct arena *arena, const char *pem)
{
    const char *at = strstr(pem, BEGIN);
    char *text = arena_alloc(arena, strlen(pem) + 1, 1), *hash;
    size_t len = 0, der_len;

    for (at = at ? at + strlen(BEGIN) : ""; *at && *at != '-'; at++) {
        if (*at != '\n' && *at != '\r')
            text[len++] = *at;
    }

    const char *der = base64_decode(arena, text, len, &der_len);

    if (!der)
        return NULL;
    hash = arena_alloc(arena, SHA256_HEX_LEN, 1);
    return sha256_hex(der, der_len, hash);
}

int data_dir_make_client(struct arena *arena, const char *directory, const char *name,
                         const struct clock *clock, struct cert_pair *ret, const char **ret_hash,
                         struct error *err)
{
    struct cert_pair ca;

    int r = data_dir_keep_client_ca(arena, directory, clock, &ca, err);
    if (r == 0)
        r = cert_make_client(arena, &ca, name, clock_wall_us(clock), DATA_DIR_LEAF_LIFETIME_US, ret,
                             err);
    if (r < 0)
        return error_wrap(err, "certificate of '%s'", name);
    *ret_hash = hash_of(arena, ret->cert);
    return *ret_hash ? 0 : error_set(err, ERROR_INTERNAL, "the new certificate cannot be read");
}

#include "standalone/process/init.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "certs/file_set.h"
#include "certs/inspect.h"
#include "common/base/digest.h"
#include "common/base/file.h"
#include "common/base/str.h"
#include "common/kube/config.h"
#include "common/net/http_listen.h"
#include "standalone/process/data_dir.h"
#include "standalone/server/users.h"

#define ADMIN "admin"

static struct http_address address_of(const struct standalone_settings *settings)
{
    struct http_address ret;
    int r = http_address_parse(settings->address, &ret, NULL);

    assert(r == 0); /* the settings were looked at when they were read */
    return ret;
}

/* A server that listens on every address is reached here by localhost. */
static const char *url_of(struct arena *arena, const struct standalone_settings *settings)
{
    struct http_address address = address_of(settings);
    const char *host = address.host;

    if (!*host || str_equal(host, "0.0.0.0") || str_equal(host, "::"))
        host = "127.0.0.1";
    return arena_printf(arena, strchr(host, ':') ? "https://[%s]:%u" : "https://%s:%u", host,
                        address.port);
}

static void add_name(struct cert_names *names, const char *name)
{
    for (size_t i = 0; i < names->len; i++) {
        if (str_equal(names->items[i], name))
            return;
    }
    if (*name)
        names->items[names->len++] = name;
}

int init_keep_certificates(struct arena *arena, const struct standalone_settings *settings,
                           bool may_begin, struct error *err)
{
    static const char *const LOCAL[] = { "localhost", "127.0.0.1", "::1" };
    struct cert_names names = {
        .items = arena_array(arena, const char *, settings->extra_names.len + ARRAY_LEN(LOCAL) + 2),
    };
    char own[64] = "";

    for (size_t i = 0; i < ARRAY_LEN(LOCAL); i++)
        add_name(&names, LOCAL[i]);
    if (gethostname(own, sizeof(own) - 1) == 0 && cert_name_is_valid(own))
        add_name(&names, arena_strdup(arena, own));
    add_name(&names, arena_strdup(arena, address_of(settings).host));
    for (size_t i = 0; i < settings->extra_names.len; i++) {
        const char *name = settings->extra_names.items[i];

        if (!cert_name_is_valid(name))
            return error_set(err, ERROR_INVALID,
                             "--extra-name: '%.100s' is neither a host name nor an IP address",
                             name);
        add_name(&names, name);
    }
    return data_dir_keep_certificates(arena, settings->data_dir, &names, may_begin, &CLOCK_SYSTEM,
                                      err);
}

static int read_server(struct arena *arena, const struct standalone_settings *settings,
                       const char **ret, struct error *err)
{
    CLEANUP(kube_config_destroyp) struct kube_config *config = NULL;
    int r =
        kube_config_load(data_dir_path(arena, settings->data_dir, DATA_DIR_ADMIN), &config, err);

    if (r == 0)
        *ret = arena_strdup(arena, kube_config_server(config));
    return r;
}

static bool is_there(struct arena *arena, const struct standalone_settings *settings,
                     const char *file)
{
    return access(data_dir_path(arena, settings->data_dir, file), F_OK) == 0;
}

/* "" before the first one is made. A lost one is not made again while kubeconfigs are there: its users would be
 * locked out, of a running server at once. */
static int read_users(struct arena *arena, const struct standalone_settings *settings,
                      const char **ret, struct error *err)
{
    const char *path = data_dir_path(arena, settings->data_dir, DATA_DIR_USERS);
    struct users *users;

    int r = data_dir_read(arena, settings->data_dir, DATA_DIR_USERS, ret, err);
    if (r < 0 && r != -ERROR_NOT_FOUND)
        return r;
    if (r < 0 || str_is_empty(*ret)) {
        *ret = "";
        if (!is_there(arena, settings, DATA_DIR_ADMIN))
            return 0;
        return error_set(
            err, ERROR_INVALID,
            "'%s' is missing or empty: restore it from a copy, or remove " DATA_DIR_ADMIN
            " there and run init, which makes both again",
            path);
    }
    r = users_parse(*ret, &users, err);
    if (r < 0)
        return error_wrap(err, "'%s'", path);
    users_destroy(users);
    if (!str_has_suffix(*ret, "\n")) /* which an editor may have left out */
        *ret = arena_printf(arena, "%s\n", *ret);
    return 0;
}

static int make_kubeconfig(struct arena *arena, const struct standalone_settings *settings,
                           const char *user, const char *token, const char **ret, struct error *err)
{
    const char *ca = NULL, *url = NULL;
    int r = data_dir_read(arena, settings->data_dir, DATA_DIR_CA "/ca.crt", &ca, err);
    if (r == 0 && str_is_empty(settings->address))
        r = read_server(arena, settings, &url, err);
    else if (r == 0)
        url = url_of(arena, settings);
    if (r != 0)
        return r;
    *ret = arena_printf(arena,
                        "apiVersion: v1\nkind: Config\n"
                        "clusters:\n- name: propeller\n  cluster:\n    server: %s\n"
                        "    certificate-authority-data: %s\n"
                        "users:\n- name: %s\n  user:\n    token: %s\n"
                        "contexts:\n- name: propeller\n  context:\n    cluster: propeller\n"
                        "    user: %s\n    namespace: default\n"
                        "current-context: propeller\n",
                        url, base64_encode(arena, ca, strlen(ca)), user, token, user);
    return 0;
}

/* The lines of all others. */
static const char *lines_of_others(struct arena *arena, const char *users, const char *name)
{
    char *text = arena_alloc(arena, strlen(users) + 1, 1);
    size_t name_len = strlen(name), at = 0;

    for (size_t len; *users; users += len) {
        const char *first = users + strspn(users, " \t\r");

        len = strcspn(users, "\n") + 1; /* each line has its end: read_users */
        if (strncmp(first, name, name_len) == 0 && strchr(" \t", first[name_len]))
            continue;
        memcpy(text + at, users, len);
        at += len;
    }
    return text;
}

/* The token of the user, and the line by which the server knows it. */
struct new_user {
    const char *kubeconfig, *line;
};

static int make_user(struct arena *arena, const struct standalone_settings *settings,
                     const char *name, enum role role, struct new_user *ret, struct error *err)
{
    const char *token = users_make_token(arena);
    int r = users_line(arena, name, role, token, &ret->line, err);

    return r == 0 ? make_kubeconfig(arena, settings, name, token, &ret->kubeconfig, err) : r;
}

static int write_users(struct arena *arena, const struct standalone_settings *settings,
                       const char *others, const char *line, struct error *err)
{
    return file_replace(data_dir_path(arena, settings->data_dir, DATA_DIR_USERS),
                        arena_printf(arena, "%s%s", others, line), err);
}

int init_read_users(struct arena *arena, const struct standalone_settings *settings,
                    const char **ret, struct error *err)
{
    int r = read_users(arena, settings, ret, err);

    if (r < 0 || **ret)
        return r;
    return error_set(err, ERROR_INVALID,
                     "'%s' has no " DATA_DIR_USERS
                     ": run 'propeller-standalone init --data-dir %s' first",
                     settings->data_dir, settings->data_dir);
}

/* The kubeconfig is printed before the line of the user is written. If printing fails, there is no user whose token is
 * lost. With the lock. */
static int add_user(struct arena *arena, const struct standalone_settings *settings,
                    struct error *err)
{
    const char *users, *others, *name = settings->name;
    struct new_user user;
    enum role role;

    if (!role_parse(settings->role, &role))
        return error_set(err, ERROR_INVALID, "--role: must be admin, edit or view");
    int r = init_read_users(arena, settings, &users, err);
    if (r < 0)
        return r;
    others = lines_of_others(arena, users, name);
    if (!str_equal(others, users))
        return error_set(err, ERROR_EXISTS, "there is a user '%s' already", name);
    r = make_user(arena, settings, name, role, &user, err);
    if (r == 0 && (fputs(user.kubeconfig, stdout) < 0 || fflush(stdout) != 0))
        r = error_set(err, ERROR_UNAVAILABLE,
                      "the kubeconfig cannot be written (%s): the user is not added",
                      strerrordesc_np(errno));
    return r == 0 ? write_users(arena, settings, others, user.line, err) : r;
}

/* With a new token, if it is lost. The line is written before it: where init ends in between, the next one finds no
 * kubeconfig, and begins again. With the lock. */
static int keep_admin(struct arena *arena, const struct standalone_settings *settings,
                      struct error *err)
{
    struct new_user user;
    const char *users;

    int r = read_users(arena, settings, &users, err);
    if (r < 0 || is_there(arena, settings, DATA_DIR_ADMIN))
        return r;
    r = make_user(arena, settings, ADMIN, ROLE_ADMIN, &user, err);
    if (r == 0)
        r = write_users(arena, settings, lines_of_others(arena, users, ADMIN), user.line, err);
    return r == 0 ? file_replace(data_dir_path(arena, settings->data_dir, DATA_DIR_ADMIN),
                                 user.kubeconfig, err)
                  : r;
}

/* Two that change users at once would each write the file without the other's. */
static int alone(struct arena *arena, const struct standalone_settings *settings,
                 int (*change)(struct arena *, const struct standalone_settings *, struct error *),
                 struct error *err)
{
    int lock;

    int r = file_set_lock(settings->data_dir, &lock, err);
    if (r < 0)
        return r;
    r = change(arena, settings, err);
    file_set_unlock(lock);
    return r;
}

int init_run(struct arena *arena, const struct standalone_settings *settings, struct error *err)
{
    struct error unread;
    const char *url;

    int r = file_make_folder(settings->data_dir, err);
    if (r == 0)
        r = data_dir_check_modes(arena, settings->data_dir, err);
    if (r == 0)
        r = init_keep_certificates(arena, settings, true, err);
    if (r == 0)
        r = alone(arena, settings, keep_admin, err);
    if (r == 0)
        printf("ready to serve. Then:\n\n    export KUBECONFIG=%s/" DATA_DIR_ADMIN "\n"
               "    kubectl get proplets,tasks\n",
               settings->data_dir);
    if (r == 0 && read_server(arena, settings, &url, &unread) == 0 &&
        !str_equal(url, url_of(arena, settings)))
        printf("\nThe kubeconfig was there already and stays: serve at %s, or change it there.\n",
               url);
    return r;
}

int init_add_user(struct arena *arena, const struct standalone_settings *settings,
                  struct error *err)
{
    const char *users;

    int r = data_dir_check_modes(arena, settings->data_dir, err);
    if (r == 0)
        r = init_read_users(arena, settings, &users, err); /* the lock would make the folder */
    return r == 0 ? alone(arena, settings, add_user, err) : r;
}

#include "plugin/cli/installation.h"

#include <string.h>

#include "common/base/clock.h"
#include "common/kube/kinds.h"
#include "plugin/cli/objects.h"

/* A leader renews its Lease every few seconds. */
#define RENEWAL_LOOKS 10
#define RENEWAL_LOOK_MS 1000

int installation_is_standalone(struct session *session, bool *ret, struct error *err)
{
    const char *version = "";
    int r = session_connect(session, err);

    if (r == 0)
        r = kube_get_text(session->client, session->arena, "/version", &version, err);
    if (r == 0)
        *ret = strstr(version, "+propeller-standalone") != NULL;
    return r;
}

struct leader leader_of(struct arena *arena, const cJSON *lease, int64_t now_us)
{
    const cJSON *spec = json_get(lease, "spec");
    const char *holder = json_string(json_get(spec, "holderIdentity"), "");
    int64_t most_us = 2 * json_int(json_get(spec, "leaseDurationSeconds"), 15) * 1000000;
    struct leader leader = { .pod = NULL };

    rfc3339_parse(json_string(json_get(spec, "renewTime"), ""), &leader.renewed_us);
    leader.age_us = now_us - leader.renewed_us;
    leader.looks_alive = leader.age_us > -most_us && leader.age_us < most_us;
    if (*holder)
        leader.pod = arena_strndup(arena, holder, strcspn(holder, "_"));
    return leader;
}

static int read_leader(struct session *session, const char *ns, struct leader *ret,
                       struct error *err)
{
    struct object_ref ref = { .kind = &KIND_LEASE };
    const cJSON *lease = NULL;

    if (!kube_name_set(&ref.name, ns, INSTALLATION_LEASE))
        return error_set(err, ERROR_INVALID, "--system-namespace: the name is too long");
    int r = object_get(session, &ref, &lease, err);
    if (r == 0)
        *ret = leader_of(session->arena, lease, session->output.now_us);
    return r;
}

int leader_find(struct session *session, const char *ns, struct leader *ret, struct error *err)
{
    int r = read_leader(session, ns, ret, err);

    if (r < 0 || !ret->pod || ret->looks_alive)
        return r;
    for (int i = 0; i < RENEWAL_LOOKS; i++) {
        struct leader now = { .pod = NULL };

        if (session_sleep(session, RENEWAL_LOOK_MS) || read_leader(session, ns, &now, NULL) < 0)
            break;
        if (now.renewed_us != ret->renewed_us)
            return 0;
    }
    ret->pod = NULL;
    return 0;
}

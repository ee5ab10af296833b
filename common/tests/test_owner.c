#include "common/kube/owner.h"

#include "common/api/kinds.h"
#include "common/kube/kinds.h"
#include "common/tests/parsed.h"
#include "common/tests/suite.h"

static const char OWNER[] = "{\"metadata\":{\"name\":\"one\",\"uid\":\"u-1\"}}";

static void setup(void)
{
    json_init();
}

TEST_GROUP("owner", setup, NULL);

TEST(a_child_names_its_controller)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    cJSON *metadata = json_object(arena);

    owner_set_controller(metadata, &KIND_TASK, parsed(arena, OWNER));
    ck_assert_str_eq(json_text(arena, metadata, NULL),
                     "{\"ownerReferences\":[{\"apiVersion\":"
                     "\"propeller.propeller.abstractmachines.fr/v1\",\"kind\":\"Task\",\"name\":"
                     "\"one\",\"uid\":\"u-1\",\"controller\":true,\"blockOwnerDeletion\":true}]}");
}

TEST(an_owner_of_the_core_group_has_a_version_alone)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    cJSON *object = json_object(arena);

    owner_set_controller(json_set_object(object, "metadata"), &KIND_CONFIGMAP,
                         parsed(arena, OWNER));
    const cJSON *reference = json_first(json_path(object, "metadata", "ownerReferences", NULL));
    ck_assert_str_eq(json_string(json_get(reference, "apiVersion"), ""), "v1");
    ck_assert_str_eq(kube_controller_uid(object), "u-1");
}

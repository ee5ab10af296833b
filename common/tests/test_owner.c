#include "common/kube/owner.h"

#include "common/api/kinds.h"
#include "common/kube/kinds.h"
#include "common/tests/parsed.h"
#include "common/tests/suite.h"

static const char OWNER[] = "{\"metadata\":{\"name\":\"one\",\"uid\":\"u-1\"}}";

START_TEST(a_child_names_its_controller)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    cJSON *metadata = json_object(arena);

    owner_set_controller(metadata, &KIND_TASK, parsed(arena, OWNER));
    ck_assert_str_eq(json_text(arena, metadata, NULL),
                     "{\"ownerReferences\":[{\"apiVersion\":"
                     "\"propeller.propeller.abstractmachines.fr/v1\",\"kind\":\"Task\",\"name\":"
                     "\"one\",\"uid\":\"u-1\",\"controller\":true,\"blockOwnerDeletion\":true}]}");
}
END_TEST

START_TEST(an_owner_of_the_core_group_has_a_version_alone)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    cJSON *object = json_object(arena);

    owner_set_controller(json_set_object(object, "metadata"), &KIND_CONFIGMAP,
                         parsed(arena, OWNER));
    const cJSON *reference = json_first(json_path(object, "metadata", "ownerReferences", NULL));
    ck_assert_str_eq(json_string(json_get(reference, "apiVersion"), ""), "v1");
    ck_assert_str_eq(kube_controller_uid(object), "u-1");
}
END_TEST

static void setup(void)
{
    json_init();
}

int main(void)
{
    Suite *suite = suite_create("owner");
    TCase *tc = tcase_create("owner");

    tcase_add_checked_fixture(tc, setup, NULL);
    tcase_add_test(tc, a_child_names_its_controller);
    tcase_add_test(tc, an_owner_of_the_core_group_has_a_version_alone);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}

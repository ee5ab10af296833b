/* The admission policy of the server: writes are judged by it, and what was there before stays. */
#include <check.h>
#include <string.h>

#include "common/api/policy.h"
#include "common/tests/suite.h"
#include "standalone/tests/api_fixture.h"

static const char *schemes[] = { "https" };
static const struct admission_policy POLICY = { .image_schemes = { schemes, 1 } };

TEST_GROUP("policy", api_setup, api_teardown);

TEST(a_server_with_a_policy_keeps_what_it_has_and_refuses_what_comes)
{
    (void)ask("POST", TASKS, task_text("old", "", ",\"imageUrl\":\"r.example/m\""), 201);
    api_policy = &POLICY;
    api_restart(NULL);
    (void)ask_patch(TASKS "/old", "merge-patch+json", "{\"spec\":{\"priority\":7}}", 200);
    (void)ask_patch(TASKS "/old", "merge-patch+json", "{\"spec\":{\"imageUrl\":\"r.example/n\"}}",
                    422);
    ck_assert_ptr_nonnull(
        strstr(refusal("POST", TASKS, task_text("new", "", ",\"imageUrl\":\"r.example/m\""), 422),
               "spec.imageUrl: Forbidden: must not be oci: allowed are https"));
}

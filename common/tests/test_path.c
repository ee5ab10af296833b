#include "common/kube/path.h"

#include "common/tests/suite.h"

static const struct kube_kind KIND_GADGET = { .group = "example.org",
                                              .version = "v1",
                                              .kind = "Gadget",
                                              .plural = "gadgets",
                                              .namespaced = true };
static const struct kube_kind KIND_POD = {
    .group = "", .version = "v1", .kind = "Pod", .plural = "pods", .namespaced = true
};
static const struct kube_kind KIND_NODE = {
    .group = "", .version = "v1", .kind = "Node", .plural = "nodes"
};

static struct buf path = BUF_INIT(1024);

static void forget_path(void)
{
    buf_release(&path);
}

TEST_GROUP("path", NULL, forget_path);

static void check_collection(const struct kube_kind *kind, const char *ns, const char *expected)
{
    buf_clear(&path);
    ck_assert(kube_path_collection(&path, kind, ns));
    ck_assert_str_eq(path.data, expected);
}

TEST(a_collection_is_of_all_namespaces_or_of_one)
{
    check_collection(&KIND_GADGET, NULL, "/apis/example.org/v1/gadgets");
    check_collection(&KIND_GADGET, "", "/apis/example.org/v1/gadgets");
    check_collection(&KIND_GADGET, "n", "/apis/example.org/v1/namespaces/n/gadgets");
    check_collection(&KIND_POD, "n", "/api/v1/namespaces/n/pods");
    check_collection(&KIND_NODE, "n", "/api/v1/nodes");
}

TEST(names_and_values_cannot_leave_their_place)
{
    check_collection(&KIND_POD, "../x?y", "/api/v1/namespaces/..%2Fx%3Fy/pods");
    ck_assert(kube_path_query(&path, "a", "b&c=d #/\xc3\xa9"));
    ck_assert(kube_path_query(&path, "e", "azAZ09-._~"));
    ck_assert_str_eq(path.data, "/api/v1/namespaces/..%2Fx%3Fy/pods"
                                "?a=b%26c%3Dd%20%23%2F%C3%A9&e=azAZ09-._~");
}

TEST(a_path_over_the_limit_is_refused)
{
    path.max = 20;
    ck_assert(!kube_path_collection(&path, &KIND_GADGET, NULL));
    buf_clear(&path);
    ck_assert(kube_path_collection(&path, &KIND_POD, NULL));
    ck_assert(!kube_path_query(&path, "limit", "500000"));
}

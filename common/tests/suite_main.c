#include "common/tests/suite.h"

int main(void)
{
    return suite_run_tests();
}

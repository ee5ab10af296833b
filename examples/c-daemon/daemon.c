/* Works until it is stopped. A daemon has no result, and what it prints stays on the device. */
#include <stdio.h>
#include <unistd.h>

int main(void)
{
    for (unsigned long round = 1;; round++) {
        printf("round %lu\n", round);
        fflush(stdout);
        sleep(1);
    }
}

/* What a PropellerJob orders its Tasks to do, beyond their own specs. */
#pragma once

enum job_order {
    JOB_ORDER_NONE,
    JOB_ORDER_SUSPEND,             /* as if each had suspend: true */
    JOB_ORDER_FAIL_FAST,           /* stop, except for those that are for failures (runIf) */
    JOB_ORDER_FAIL_FAST_SUSPENDED, /* and those as if each had suspend: true */
    JOB_ORDER_STOP,                /* all of them */
};

;; main(n, value): n naps of 20 ms, then value. Costs no processor while it waits.
(module
  (import "wasi_snapshot_preview1" "poll_oneoff"
    (func $poll (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "main") (param $n i32) (param $value i32) (result i32)
    (i32.store (i32.const 16) (i32.const 1))            ;; the monotonic clock
    (i64.store (i32.const 24) (i64.const 20000000))     ;; 20 ms from now
    (block $done
      (loop $again
        (br_if $done (i32.eqz (local.get $n)))
        (drop (call $poll (i32.const 0) (i32.const 64) (i32.const 1) (i32.const 128)))
        (local.set $n (i32.sub (local.get $n) (i32.const 1)))
        (br $again)))
    (local.get $value)))

;; A long computation whose state is its linear memory: logistic regression with four weights, by stochastic gradient
;; descent on samples of a generator of its own. slice(n) takes n more steps, steps() says how many there were, and
;; result() is a digest of the weights, bit for bit. main() takes all steps at once. The first page of memory holds
;; the whole state: step i64 at 0, generator i64 at 8, weights f64 at 16 to 40.
(module
  (memory (export "memory") 1)
  (global $steps i64 (i64.const 1000000))

  ;; From -1 to 1.
  (func $random (result f64)
    (i64.store (i32.const 8)
      (i64.add (i64.mul (i64.load (i32.const 8)) (i64.const 6364136223846793005)) (i64.const 1442695040888963407)))
    (f64.sub
      (f64.div (f64.convert_i64_u (i64.shr_u (i64.load (i32.const 8)) (i64.const 33))) (f64.const 1073741824))
      (f64.const 1)))

  ;; As steep as the logistic function at 0, and the same on every machine.
  (func $squash (param $x f64) (result f64)
    (f64.add (f64.const 0.5)
      (f64.div (f64.mul (f64.const 0.5) (local.get $x))
               (f64.add (f64.const 2) (f64.abs (local.get $x))))))

  (func $step
    (local $a f64) (local $b f64) (local $c f64) (local $error f64)
    (local.set $a (call $random))
    (local.set $b (call $random))
    (local.set $c (call $random))
    ;; the sample is positive where 2a - b + c/2 > 0.1
    (local.set $error
      (f64.mul (f64.const 0.05)
        (f64.sub
          (f64.convert_i32_u
            (f64.gt
              (f64.add (f64.sub (f64.mul (f64.const 2) (local.get $a)) (local.get $b))
                       (f64.mul (f64.const 0.5) (local.get $c)))
              (f64.const 0.1)))
          (call $squash
            (f64.add
              (f64.add (f64.mul (f64.load (i32.const 16)) (local.get $a))
                       (f64.mul (f64.load (i32.const 24)) (local.get $b)))
              (f64.add (f64.mul (f64.load (i32.const 32)) (local.get $c)) (f64.load (i32.const 40))))))))
    (f64.store (i32.const 16) (f64.add (f64.load (i32.const 16)) (f64.mul (local.get $error) (local.get $a))))
    (f64.store (i32.const 24) (f64.add (f64.load (i32.const 24)) (f64.mul (local.get $error) (local.get $b))))
    (f64.store (i32.const 32) (f64.add (f64.load (i32.const 32)) (f64.mul (local.get $error) (local.get $c))))
    (f64.store (i32.const 40) (f64.add (f64.load (i32.const 40)) (local.get $error)))
    (i64.store (i32.const 0) (i64.add (i64.load (i32.const 0)) (i64.const 1))))

  (func (export "steps") (result i64) (i64.load (i32.const 0)))

  (func (export "slice") (param $n i32)
    (block $enough
      (loop $next
        (br_if $enough (i32.eqz (local.get $n)))
        (br_if $enough (i64.ge_u (i64.load (i32.const 0)) (global.get $steps)))
        (call $step)
        (local.set $n (i32.sub (local.get $n) (i32.const 1)))
        (br $next))))

  (func $result (export "result") (result i64)
    (i64.xor
      (i64.xor (i64.load (i32.const 16)) (i64.rotl (i64.load (i32.const 24)) (i64.const 16)))
      (i64.xor (i64.rotl (i64.load (i32.const 32)) (i64.const 32)) (i64.rotl (i64.load (i32.const 40)) (i64.const 48)))))

  (func (export "main") (result i64)
    (loop $next
      (call $step)
      (br_if $next (i64.lt_u (i64.load (i32.const 0)) (global.get $steps))))
    (call $result)))

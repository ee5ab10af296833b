;; One participant of federated learning: linear regression y = w1 x1 + w2 x2 + b, five epochs of
;; gradient descent on 20 to 90 samples of its own. What PROPLET_ID says decides how many they are,
;; where they lie and which noise they have, so no two devices have the same distribution. Begins
;; with the model in MODEL_DATA or FL_GLOBAL_UPDATE_B64, or with zeros, and prints
;; {"num_samples":n,"metrics":{"loss":l},"update":[w1,w2,b]}; the loss is that of the model it began
;; with.
(module
  (import "wasi_snapshot_preview1" "environ_sizes_get" (func $sizes (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "environ_get" (func $environ (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 8)
  ;; 0: an iovec; 16: sizes; 64: texts; 1024: output; 65536: environment; 393216: samples; 458752:
  ;; the decoded model
  (data (i32.const 64) "PROPLET_ID")
  (data (i32.const 80) "MODEL_DATA")
  (data (i32.const 96) "FL_GLOBAL_UPDATE_B64")
  (data (i32.const 128) "{\"num_samples\":")
  (data (i32.const 144) ",\"metrics\":{\"loss\":")
  (data (i32.const 164) "},\"update\":[")
  (data (i32.const 180) "]}")
  (global $len (mut i32) (i32.const 0))   ;; of the output
  (global $at (mut i32) (i32.const 0))    ;; where numbers are read
  (global $state (mut i64) (i64.const 1)) ;; of the random numbers
  (global $w1 (mut f64) (f64.const 0))
  (global $w2 (mut f64) (f64.const 0))
  (global $b (mut f64) (f64.const 0))

  ;; ---- output ----
  (func $put (param $c i32)
    (i32.store8 (i32.add (i32.const 1024) (global.get $len)) (local.get $c))
    (global.set $len (i32.add (global.get $len) (i32.const 1))))
  (func $puts (param $p i32) (param $n i32)
    (loop $next
      (call $put (i32.load8_u (local.get $p)))
      (local.set $p (i32.add (local.get $p) (i32.const 1)))
      (br_if $next (local.tee $n (i32.sub (local.get $n) (i32.const 1))))))
  ;; at least so many digits
  (func $digits (param $v i64) (param $n i32)
    (if (i32.or (i64.ge_u (local.get $v) (i64.const 10)) (i32.gt_s (local.get $n) (i32.const 1)))
      (then (call $digits (i64.div_u (local.get $v) (i64.const 10))
                          (i32.sub (local.get $n) (i32.const 1)))))
    (call $put (i32.add (i32.const 48) (i32.wrap_i64 (i64.rem_u (local.get $v) (i64.const 10))))))
  (func $number (param $v f64)
    (local $scaled i64)
    (if (f64.lt (local.get $v) (f64.const 0)) (then (call $put (i32.const 45))))
    (local.set $scaled
      (i64.trunc_f64_s (f64.nearest (f64.mul (f64.abs (local.get $v)) (f64.const 1e12)))))
    (call $digits (i64.div_u (local.get $scaled) (i64.const 1000000000000)) (i32.const 1))
    (call $put (i32.const 46))
    (call $digits (i64.rem_u (local.get $scaled) (i64.const 1000000000000)) (i32.const 12)))

  ;; ---- input ----
  ;; The value of a variable, or 0.
  (func $variable (param $key i32) (param $n i32) (result i32)
    (local $i i32) (local $p i32) (local $j i32)
    (block $none
      (loop $next
        (br_if $none (i32.ge_u (local.get $i) (i32.load (i32.const 16))))
        (local.set $p (i32.load (i32.add (i32.const 65536) (i32.shl (local.get $i) (i32.const 2)))))
        (local.set $i (i32.add (local.get $i) (i32.const 1)))
        (local.set $j (i32.const 0))
        (block $same
          (loop $compare
            (br_if $same (i32.eq (local.get $j) (local.get $n)))
            (br_if $next (i32.ne (i32.load8_u (i32.add (local.get $p) (local.get $j)))
                                 (i32.load8_u (i32.add (local.get $key) (local.get $j)))))
            (local.set $j (i32.add (local.get $j) (i32.const 1)))
            (br $compare)))
        (br_if $next (i32.ne (i32.load8_u (i32.add (local.get $p) (local.get $n))) (i32.const 61)))
        (return (i32.add (i32.add (local.get $p) (local.get $n)) (i32.const 1)))))
    (i32.const 0))
  (func $peek (result i32) (i32.load8_u (global.get $at)))
  (func $skip (global.set $at (i32.add (global.get $at) (i32.const 1))))
  (func $is_digit (param $c i32) (result i32)
    (i32.lt_u (i32.sub (local.get $c) (i32.const 48)) (i32.const 10)))
  ;; The next number of the text, 0 at its end.
  (func $read (result f64)
    (local $v f64) (local $scale f64) (local $sign f64) (local $e i32) (local $down i32)
    (local.set $sign (f64.const 1))
    (local.set $scale (f64.const 1))
    (block $found
      (loop $search
        (br_if $found (i32.eqz (call $peek)))
        (br_if $found (call $is_digit (call $peek)))
        (local.set $sign (select (f64.const -1) (f64.const 1) (i32.eq (call $peek) (i32.const 45))))
        (call $skip)
        (br $search)))
    (loop $whole
      (if (call $is_digit (call $peek))
        (then
          (local.set $v (f64.add (f64.mul (local.get $v) (f64.const 10))
                                 (f64.convert_i32_u (i32.sub (call $peek) (i32.const 48)))))
          (call $skip)
          (br $whole))))
    (if (i32.eq (call $peek) (i32.const 46))
      (then
        (call $skip)
        (loop $fraction
          (if (call $is_digit (call $peek))
            (then
              (local.set $scale (f64.mul (local.get $scale) (f64.const 10)))
              (local.set $v (f64.add (f64.mul (local.get $v) (f64.const 10))
                                     (f64.convert_i32_u (i32.sub (call $peek) (i32.const 48)))))
              (call $skip)
              (br $fraction))))))
    (if (i32.eq (i32.or (call $peek) (i32.const 32)) (i32.const 101))
      (then
        (call $skip)
        (local.set $down (i32.eq (call $peek) (i32.const 45)))
        (if (i32.eqz (call $is_digit (call $peek))) (then (call $skip)))
        (loop $exponent
          (if (call $is_digit (call $peek))
            (then
              (local.set $e (i32.add (i32.mul (local.get $e) (i32.const 10))
                                     (i32.sub (call $peek) (i32.const 48))))
              (call $skip)
              (br $exponent))))
        (block $done
          (loop $apply
            (br_if $done (i32.eqz (local.get $e)))
            (if (local.get $down)
              (then (local.set $scale (f64.mul (local.get $scale) (f64.const 10))))
              (else (local.set $v (f64.mul (local.get $v) (f64.const 10)))))
            (local.set $e (i32.sub (local.get $e) (i32.const 1)))
            (br $apply)))))
    (f64.mul (local.get $sign) (f64.div (local.get $v) (local.get $scale))))
  (func $sextet (param $c i32) (result i32)
    (if (i32.lt_u (i32.sub (local.get $c) (i32.const 65)) (i32.const 26))
      (then (return (i32.sub (local.get $c) (i32.const 65)))))
    (if (i32.lt_u (i32.sub (local.get $c) (i32.const 97)) (i32.const 26))
      (then (return (i32.sub (local.get $c) (i32.const 71)))))
    (if (call $is_digit (local.get $c)) (then (return (i32.add (local.get $c) (i32.const 4)))))
    (select (i32.const 62) (i32.const 63) (i32.eq (local.get $c) (i32.const 43))))
  ;; base64 at p to 458752, with a NUL behind it.
  (func $decode (param $p i32)
    (local $bits i32) (local $have i32) (local $to i32) (local $c i32)
    (local.set $to (i32.const 458752))
    (block $end
      (loop $next
        (local.set $c (i32.load8_u (local.get $p)))
        (br_if $end (i32.or (i32.eqz (local.get $c)) (i32.eq (local.get $c) (i32.const 61))))
        (local.set $p (i32.add (local.get $p) (i32.const 1)))
        (local.set $bits (i32.or (i32.shl (local.get $bits) (i32.const 6))
                                 (call $sextet (local.get $c))))
        (local.set $have (i32.add (local.get $have) (i32.const 6)))
        (br_if $next (i32.lt_s (local.get $have) (i32.const 8)))
        (local.set $have (i32.sub (local.get $have) (i32.const 8)))
        (i32.store8 (local.get $to) (i32.shr_u (local.get $bits) (local.get $have)))
        (local.set $to (i32.add (local.get $to) (i32.const 1)))
        (br $next)))
    (i32.store8 (local.get $to) (i32.const 0)))
  (func $read_model
    (local $p i32)
    (global.set $at (call $variable (i32.const 80) (i32.const 10)))
    (if (i32.eqz (global.get $at))
      (then
        (local.set $p (call $variable (i32.const 96) (i32.const 20)))
        (if (i32.eqz (local.get $p)) (then (return)))
        (call $decode (local.get $p))
        (global.set $at (i32.const 458752))))
    (global.set $w1 (call $read))
    (global.set $w2 (call $read))
    (global.set $b (call $read)))

  ;; ---- data ----
  ;; xorshift64, in -1 .. 1
  (func $random (result f64)
    (global.set $state (i64.xor (global.get $state) (i64.shl (global.get $state) (i64.const 13))))
    (global.set $state (i64.xor (global.get $state) (i64.shr_u (global.get $state) (i64.const 7))))
    (global.set $state (i64.xor (global.get $state) (i64.shl (global.get $state) (i64.const 17))))
    (f64.sub (f64.div (f64.convert_i64_u (i64.shr_u (global.get $state) (i64.const 11)))
                      (f64.const 4503599627370496))
             (f64.const 1)))
  ;; FNV-1a of the device's name
  (func $seed
    (local $p i32)
    (global.set $state (i64.const -3750763034362895579))
    (local.set $p (call $variable (i32.const 64) (i32.const 10)))
    (if (i32.eqz (local.get $p)) (then (return)))
    (block $end
      (loop $next
        (br_if $end (i32.eqz (i32.load8_u (local.get $p))))
        (global.set $state
          (i64.mul (i64.xor (global.get $state) (i64.load8_u (local.get $p)))
                   (i64.const 1099511628211)))
        (local.set $p (i32.add (local.get $p) (i32.const 1)))
        (br $next))))
  ;; n samples of 24 bytes at 393216: x1, x2, y = 2 x1 - 3 x2 + 0.5 and noise
  (func $make (param $n i32)
    (local $p i32) (local $c1 f64) (local $c2 f64) (local $x1 f64) (local $x2 f64)
    (local.set $p (i32.const 393216))
    (local.set $c1 (call $random))
    (local.set $c2 (call $random))
    (loop $next
      (local.set $x1 (f64.add (local.get $c1) (call $random)))
      (local.set $x2 (f64.add (local.get $c2) (call $random)))
      (f64.store (local.get $p) (local.get $x1))
      (f64.store offset=8 (local.get $p) (local.get $x2))
      (f64.store offset=16 (local.get $p)
        (f64.add
          (f64.sub (f64.mul (f64.const 2) (local.get $x1)) (f64.mul (f64.const 3) (local.get $x2)))
          (f64.add (f64.const 0.5) (f64.mul (f64.const 0.1) (call $random)))))
      (local.set $p (i32.add (local.get $p) (i32.const 24)))
      (br_if $next (local.tee $n (i32.sub (local.get $n) (i32.const 1))))))

  ;; ---- training ----
  ;; One epoch; the mean of the squared errors before it.
  (func $epoch (param $n i32) (param $rate f64) (result f64)
    (local $i i32) (local $p i32) (local $error f64) (local $loss f64)
    (local $g1 f64) (local $g2 f64) (local $gb f64) (local $share f64)
    (local.set $p (i32.const 393216))
    (local.set $share (f64.div (f64.const 1) (f64.convert_i32_s (local.get $n))))
    (loop $next
      (local.set $error
        (f64.sub
          (f64.add (f64.add (f64.mul (global.get $w1) (f64.load (local.get $p)))
                            (f64.mul (global.get $w2) (f64.load offset=8 (local.get $p))))
                   (global.get $b))
          (f64.load offset=16 (local.get $p))))
      (local.set $loss (f64.add (local.get $loss) (f64.mul (local.get $error) (local.get $error))))
      (local.set $g1 (f64.add (local.get $g1)
                              (f64.mul (local.get $error) (f64.load (local.get $p)))))
      (local.set $g2 (f64.add (local.get $g2)
                              (f64.mul (local.get $error) (f64.load offset=8 (local.get $p)))))
      (local.set $gb (f64.add (local.get $gb) (local.get $error)))
      (local.set $p (i32.add (local.get $p) (i32.const 24)))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $next (i32.lt_s (local.get $i) (local.get $n))))
    (local.set $rate (f64.mul (local.get $rate) (local.get $share)))
    (global.set $w1 (f64.sub (global.get $w1) (f64.mul (local.get $rate) (local.get $g1))))
    (global.set $w2 (f64.sub (global.get $w2) (f64.mul (local.get $rate) (local.get $g2))))
    (global.set $b (f64.sub (global.get $b) (f64.mul (local.get $rate) (local.get $gb))))
    (f64.mul (local.get $loss) (local.get $share)))

  (func (export "_start")
    (local $n i32) (local $loss f64) (local $i i32)
    (drop (call $sizes (i32.const 16) (i32.const 20)))
    (drop (call $environ (i32.const 65536) (i32.const 73728)))
    (call $seed)
    (local.set $n
      (i32.add (i32.const 20)
               (i32.mul (i32.const 10)
                        (i32.wrap_i64 (i64.and (global.get $state) (i64.const 7))))))
    (call $make (local.get $n))
    (call $read_model)
    (local.set $loss (call $epoch (local.get $n) (f64.const 0.1)))
    (loop $more
      (drop (call $epoch (local.get $n) (f64.const 0.1)))
      (br_if $more
        (i32.lt_s (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 4))))
    (call $puts (i32.const 128) (i32.const 15))
    (call $digits (i64.extend_i32_u (local.get $n)) (i32.const 1))
    (call $puts (i32.const 144) (i32.const 19))
    (call $number (local.get $loss))
    (call $puts (i32.const 164) (i32.const 12))
    (call $number (global.get $w1))
    (call $put (i32.const 44))
    (call $number (global.get $w2))
    (call $put (i32.const 44))
    (call $number (global.get $b))
    (call $puts (i32.const 180) (i32.const 2))
    (i32.store (i32.const 0) (i32.const 1024))
    (i32.store (i32.const 4) (global.get $len))
    (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))))

;; smooth(previous, sample): one step of a filter for a sensor. The result moves a quarter of the way to the sample.
;; A sample more than 10 away from the previous value is a disturbance, and changes nothing.
(module
  (func (export "smooth") (param $previous f64) (param $sample f64) (result f64)
    (local $difference f64)
    (local.set $difference (f64.sub (local.get $sample) (local.get $previous)))
    (if (f64.gt (f64.abs (local.get $difference)) (f64.const 10))
      (then (return (local.get $previous))))
    (f64.add (local.get $previous) (f64.mul (local.get $difference) (f64.const 0.25)))))

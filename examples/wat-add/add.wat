;; The smallest module of use: an export with two numbers, and one number as its result.
(module
  (func (export "add") (param $a i32) (param $b i32) (result i32)
    local.get $a
    local.get $b
    i32.add))

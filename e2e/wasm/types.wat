;; One function for each kind of result.
(module
  (func (export "void"))
  (func (export "i64") (param i64) (result i64) (i64.add (local.get 0) (i64.const 1)))
  (func (export "f32") (param f32 f32) (result f32) (f32.add (local.get 0) (local.get 1)))
  (func (export "f64") (param f64 f64) (result f64) (f64.add (local.get 0) (local.get 1)))
  (func (export "pair") (result i32 i32) (i32.const 2) (i32.const 1)))

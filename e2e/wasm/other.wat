;; None of the names that a device falls back to.
(module
  (func (export "other")))

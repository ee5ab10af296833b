(module
  (func (export "main") unreachable))

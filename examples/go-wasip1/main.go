// A library for WASI: the runtime calls its exports, and main is never called.
package main

//go:wasmexport add
func add(a, b int32) int32 {
	return a + b
}

func main() {}

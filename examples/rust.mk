# Debian's rustc has the targets for WebAssembly in the package libstd-rust-dev-wasm32. Another one is named by RUSTC.
RUSTC ?= $(if $(wildcard /usr/lib/rustlib/wasm32-wasi),/usr/bin/rustc,rustc)
RUSTFLAGS ?= --edition 2021 -C opt-level=s -C strip=symbols -C panic=abort
NEEDED_FILES = $(or $(shell $(RUSTC) --print target-libdir --target $(TARGET)),rustc for $(TARGET))

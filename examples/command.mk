# For examples that run as a command: a component made of a core module for WASI, $(CORE), which has a rule of its own.
FUNCTION := _start
CORE = $(OUT)/$(NAME).core.wasm
JCO ?= jco

$(WASM): $(OUT)/$(NAME).core.wasm
	$(JCO) new --wasi-command --output $@ $< >/dev/null

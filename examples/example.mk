# The rules that the examples share. NAME is the folder, NEEDS are the programs that build it, and WASM is the
# module. An example with a module has one rule of its own, for $(WASM).
#   make wasm   builds the module
#   make run    runs it in the cluster of the kubeconfig, and prints its result
#   make needs  prints which of its programs are missing
EXAMPLES := $(abspath $(dir $(lastword $(MAKEFILE_LIST))))
OUT ?= $(abspath $(EXAMPLES)/../build/examples)
NAME := $(notdir $(CURDIR))
WASM := $(OUT)/$(NAME).wasm
FUNCTION ?= $(lastword $(subst -, ,$(NAME)))
RUN = kubectl propeller run $(NAME) --rm --wasm $(WASM) --function $(FUNCTION) $(INPUTS:%=--input=%) $(ENV:%=--env=%)

.PHONY: wasm run needs
wasm: $(WASM)
	@printf '%s: %d bytes\n' $(NAME) "$$(wc -c <$(WASM))"
run: $(WASM)
	@$(RUN)
needs:
	@for program in $(NEEDS); do command -v $$program >/dev/null || echo $$program; done
	@$(foreach file,$(NEEDED_FILES),[ -e '$(file)' ] || echo '$(file)';)

$(WASM): | $(OUT)
$(OUT):
	@mkdir -p $@

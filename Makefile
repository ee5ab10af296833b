# Propeller for Kubernetes: `make help` says what there is.

SHELL := /bin/bash
.DEFAULT_GOAL := all

# A flavour has its own object tree, so that plain and sanitizer builds stand side by side.
FLAVOUR ?= plain
OUT := build/$(FLAVOUR)

CC ?= gcc
# A compiler cache where the machine has one: other checkouts and flavours find what was compiled before.
export CCACHE_BASEDIR := $(CURDIR)
COMPILE = $(CCACHE) $(CC)
CCACHE := $(shell command -v ccache 2>/dev/null)
LIBS := libcurl openssl libmicrohttpd gnutls libcjson yaml-0.1 libmosquitto libprotobuf-c
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)

WARNINGS := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes \
            -Wvla -Wwrite-strings -Wformat=2 -Wundef -Werror
HARDENING := -fstack-protector-strong -fPIE -fno-common -D_FORTIFY_SOURCE=2
OPTIMISE := -O2
SANITIZE_plain :=
SANITIZE_asan := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
SANITIZE_tsan := -fsanitize=thread -fno-omit-frame-pointer
SANITIZE_fuzz := -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
ifneq ($(FLAVOUR),plain)
HARDENING := -fPIE -fno-common
OPTIMISE := -O1
endif

# The same programs in whatever folder they are built.
PREFIX_MAP := -ffile-prefix-map=$(CURDIR)=.
CFLAGS_ALL = -std=c17 -D_GNU_SOURCE -g $(PREFIX_MAP) $(OPTIMISE) $(WARNINGS) $(HARDENING) $(SANITIZE_$(FLAVOUR)) -pthread -I. \
             -isystem build/generated \
             -include common/base/banned.h -MMD -MP $(LIBS_CFLAGS) $(CFLAGS)
LDFLAGS_ALL = -pie -pthread -Wl,-z,relro,-z,now -Wl,--as-needed $(SANITIZE_$(FLAVOUR)) $(LDFLAGS)
LIBS_CFLAGS := $(shell pkg-config --cflags $(LIBS) 2>/dev/null)
LDLIBS_ALL := $(shell pkg-config --libs $(LIBS) 2>/dev/null) -lm
# The embedded store, of the standalone program alone.
STANDALONE_LIBS = $(shell pkg-config --libs sqlite3 2>/dev/null)

COMMON_SRC := $(filter-out common/tests/%,$(wildcard common/*/*.c))
CONTROLLER_SRC := $(filter-out controller/tests/%,$(wildcard controller/*/*.c controller/*/*/*.c))
WEBHOOK_SRC := $(filter-out webhook/main.c,$(wildcard webhook/*.c))
CERTS_SRC := $(filter-out certs/certgen.c,$(wildcard certs/*.c))
STANDALONE_SRC := $(filter-out standalone/tests/%,$(wildcard standalone/*/*.c))
PLUGIN_SRC := $(filter-out plugin/tests/%,$(wildcard plugin/*/*.c))
PROTO := build/generated/vmafx.pb-c
KUBE_PROTO := build/generated/kube.pb-c
FLEET_SRC := $(filter-out bench/fleet/main.c,$(wildcard bench/fleet/*.c))
TESTED := common controller webhook certs bench standalone plugin
TEST_SRC := $(wildcard $(TESTED:%=%/tests/test_*.c))
TEST_SUPPORT_SRC := $(filter-out $(TEST_SRC),$(wildcard $(TESTED:%=%/tests/*.c)))
FUZZ_SRC := $(wildcard */tests/fuzz/fuzz_*.c)

# Where a target builds more than it was asked for; make -j says how many at once, else the machine does.
JOBS = $(if $(filter -j% --jobserver%,$(MAKEFLAGS)),,-j$(shell nproc))

objects = $(patsubst %.c,$(OUT)/%.o,$(1))
# One thread: the stage of these tests runs controllers, watches and faults in turn. The thread sanitizer, much
# slower, has nothing to find there.
ONE_THREAD := $(wildcard controller/tests/test_*_torture.c controller/tests/test_*_walks.c \
                controller/tests/test_*plan*.c controller/tests/test_room*.c webhook/tests/test_admission.c)
TESTS := $(patsubst %.c,$(OUT)/%,$(if $(filter tsan,$(FLAVOUR)),$(filter-out $(ONE_THREAD),$(TEST_SRC)),$(TEST_SRC)))
FUZZERS := $(patsubst %.c,$(OUT)/%,$(FUZZ_SRC))
BINARIES := $(addprefix $(OUT)/bin/propeller-,controller webhook certgen standalone graph) $(OUT)/bin/kubectl-propeller
FLEET := $(OUT)/bin/propeller-fleet

.PHONY: all
all: $(BINARIES) ## build the programs into build/bin
ifeq ($(FLAVOUR),plain)
	@mkdir -p build && ln -sfn plain/bin build/bin
endif

$(OUT)/bin/propeller-controller: $(addprefix $(OUT)/,controller/main.o libcontroller.a libcerts.a libcommon.a)
$(OUT)/bin/propeller-webhook: $(addprefix $(OUT)/,webhook/main.o libwebhook.a libcommon.a)
$(OUT)/bin/propeller-certgen: $(addprefix $(OUT)/,certs/certgen.o libcerts.a libcommon.a)
$(OUT)/bin/propeller-graph: $(addprefix $(OUT)/,graph/main.o graph/report.o libcommon.a)
$(OUT)/bin/propeller-standalone: $(addprefix $(OUT)/,standalone/main.o libstandalone.a libcontroller.a libcerts.a libcommon.a)
$(OUT)/bin/propeller-standalone: LDLIBS_ALL += $(STANDALONE_LIBS)
$(OUT)/bin/kubectl-propeller: $(addprefix $(OUT)/,plugin/main.o libplugin.a libcontroller.a libcommon.a)
$(FLEET): $(addprefix $(OUT)/,bench/fleet/main.o libfleet.a libcommon.a)
$(OUT)/bin/%:
	@mkdir -p $(@D)
	@echo "  LINK    $@"
	@$(CC) $(LDFLAGS_ALL) -o $@ $^ $(LDLIBS_ALL)

$(OUT)/libcommon.a: $(call objects,$(COMMON_SRC))
$(OUT)/libcontroller.a: $(call objects,$(CONTROLLER_SRC) $(PROTO).c)
$(OUT)/libwebhook.a: $(call objects,$(WEBHOOK_SRC))
$(OUT)/libcerts.a: $(call objects,$(CERTS_SRC))
$(OUT)/libstandalone.a: $(call objects,$(STANDALONE_SRC) $(KUBE_PROTO).c)
$(OUT)/libplugin.a: $(call objects,$(PLUGIN_SRC))
$(OUT)/libfleet.a: $(call objects,$(FLEET_SRC))
$(OUT)/libtestsupport.a: $(call objects,$(TEST_SUPPORT_SRC))
$(OUT)/%.a:
	@mkdir -p $(@D)
	@rm -f $@
	@$(AR) rcs $@ $(filter %.o,$^)

$(OUT)/%.o: %.c Makefile
	@mkdir -p $(@D)
	@echo "  CC      $@"
	@$(COMPILE) $(CFLAGS_ALL) -c -o $@ $<

# The file changes when the version does, which a commit is enough for.
$(OUT)/common/base/version.o: CFLAGS_ALL += -DPROPELLER_VERSION='"$(VERSION)"'
$(OUT)/common/base/version.o: $(OUT)/version
$(OUT)/version: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' '$(VERSION)' | cmp -s - $@ || printf '%s\n' '$(VERSION)' >$@
.PHONY: FORCE
FORCE:

# Hold these files.
$(OUT)/common/schema/crds.o: $(wildcard crds/*.yaml crds/*/*.yaml)
$(OUT)/standalone/schema/bundle.o: build/documents
$(OUT)/plugin/commands/explain.o: build/explain.json
$(OUT)/controller/page/files.o: $(wildcard controller/page/client/*) $(wildcard controller/page/vendor/*)

# Messages of gRPC and of Kubernetes, the same in all flavours.
define PROTO_RULE
$(1).c $(1).h &: $(2)
	@mkdir -p $$(@D)/$$$$$$$$ && echo "  GEN     $(1).c" && \
	    protoc-c --proto_path=$$(<D) --c_out=$$(@D)/$$$$$$$$ $$(<F) && mv $$(@D)/$$$$$$$$/* $$(@D)/ && rmdir $$(@D)/$$$$$$$$
endef
$(eval $(call PROTO_RULE,$(PROTO),controller/vmafx/vmafx.proto))
$(eval $(call PROTO_RULE,$(KUBE_PROTO),standalone/api/kube.proto))
$(OUT)/controller/vmafx/vmafx_getjob.o: $(PROTO).h
$(OUT)/standalone/api/protobuf.o: $(KUBE_PROTO).h

# What propeller-standalone serves as bytes, the same in all flavours; whole or not there.
build/documents: standalone/schema/documents.py standalone/schema/kinds.yaml standalone/schema/builtin.json \
                 crds/crds.def $(wildcard crds/*.yaml crds/*/*.yaml)
	@mkdir -p $(@D)
	@echo "  GEN     $@"
	@python3 -B $< >$@.$$$$ && mv $@.$$$$ $@ || { rm -f $@.$$$$; exit 1; }

# What `kubectl propeller explain` says of conditions, alerts and metrics. Sources of metrics are all that declare one.
build/explain.json: plugin/explain/tables.py docs/tools/metrics.py docs/reference/conditions.md docs/how-to/monitor.md \
                    config/metrics/rules.yaml $(shell grep -rl --include=*.c 'struct metric ' common controller certs webhook standalone)
	@mkdir -p $(@D)
	@echo "  GEN     $@"
	@python3 -B $< >$@.$$$$ && mv $@.$$$$ $@ || { rm -f $@.$$$$; exit 1; }

# Tests and fuzz targets: one program a file, linked with everything it may need; by mold where the machine has one,
# which takes a tenth of the time. The programs that are shipped are linked by the compiler's own linker.
FAST_LINK := $(if $(shell command -v mold 2>/dev/null),-fuse-ld=mold)
$(TESTS) $(FUZZERS): LDFLAGS_ALL += $(FAST_LINK)
TEST_ARCHIVES = $(addprefix $(OUT)/,libtestsupport.a libplugin.a libstandalone.a libcontroller.a libwebhook.a libcerts.a libfleet.a libcommon.a)
.SECONDARY: $(call objects,$(TEST_SRC) $(FUZZ_SRC))
$(TESTS): LDLIBS_ALL += $(shell pkg-config --libs check 2>/dev/null)
$(filter $(OUT)/standalone/%,$(TESTS) $(FUZZERS)): LDLIBS_ALL += $(STANDALONE_LIBS)
$(TESTS): $(OUT)/%: $(OUT)/%.o $(TEST_ARCHIVES)
	@$(CC) $(LDFLAGS_ALL) -o $@ $^ $(LDLIBS_ALL)
# They start the program itself.
$(OUT)/webhook/tests/test_hostile: | $(OUT)/bin/propeller-webhook
$(OUT)/certs/tests/test_certgen: | $(OUT)/bin/propeller-certgen
$(OUT)/common/tests/test_graph_program: | $(OUT)/bin/propeller-graph
# A fuzz target's main(): the fuzzer's own in the flavour fuzz, which clang builds; else the replay.
FUZZ_MEASURED := $(OUT)/common/tests/fuzz/measured.o
FUZZ_MAIN := $(OUT)/common/tests/fuzz/replay.o
ifeq ($(FLAVOUR),fuzz)
FUZZ_MAIN :=
FUZZ_LDFLAGS := -fsanitize=fuzzer
endif
$(FUZZERS): $(OUT)/%: $(OUT)/%.o $(FUZZ_MEASURED) $(FUZZ_MAIN) $(TEST_ARCHIVES)
	@$(CC) $(LDFLAGS_ALL) $(FUZZ_LDFLAGS) -o $@ $^ $(LDLIBS_ALL)

# Measures and loads a webhook, for bench/ and e2e/; propeller-fleet simulates devices.
LOAD := $(OUT)/bench/load
$(LOAD): $(OUT)/bench/load.o $(OUT)/libcommon.a
	@$(CC) $(LDFLAGS_ALL) -o $@ $^ $(LDLIBS_ALL)
PATHS := $(OUT)/bench/paths
$(PATHS): $(OUT)/bench/paths.o $(addprefix $(OUT)/,libcontroller.a libwebhook.a libcerts.a libcommon.a)
	@$(CC) $(LDFLAGS_ALL) -o $@ $^ $(LDLIBS_ALL)
WRITES := $(OUT)/bench/writes
$(WRITES): $(addprefix $(OUT)/,bench/writes.o bench/client.o libcommon.a)
	@$(CC) $(LDFLAGS_ALL) -o $@ $^ $(LDLIBS_ALL)
# What users of an API server see of its speed.
APISERVER := $(OUT)/bench/apiserver
$(APISERVER): $(addprefix $(OUT)/,bench/apiserver.o bench/client.o libcommon.a)
	@$(CC) $(LDFLAGS_ALL) -o $@ $^ $(LDLIBS_ALL)
# Aggregates updates, for bench/ and for `make aggregators`.
AGGREGATE := $(OUT)/bench/aggregate
$(AGGREGATE): $(OUT)/bench/aggregate.o $(addprefix $(OUT)/,libcontroller.a libcerts.a libcommon.a)
	@$(CC) $(LDFLAGS_ALL) -o $@ $^ $(LDLIBS_ALL)
# The embedded store alone, for bench/.
KV := $(OUT)/bench/kv
$(KV): LDLIBS_ALL += $(STANDALONE_LIBS)
$(KV): $(OUT)/bench/kv.o $(addprefix $(OUT)/,libstandalone.a libcommon.a)
	@$(CC) $(LDFLAGS_ALL) -o $@ $^ $(LDLIBS_ALL)
.PHONY: load benchmarks
load: $(LOAD)
	@:
benchmarks: all load $(FLEET) $(PATHS) $(AGGREGATE) $(KV) $(WRITES) $(APISERVER)
	@:

-include $(patsubst %.o,%.d,$(call objects,$(COMMON_SRC) $(CONTROLLER_SRC) $(WEBHOOK_SRC) $(CERTS_SRC) \
                            $(STANDALONE_SRC) $(PLUGIN_SRC) $(TEST_SUPPORT_SRC) $(TEST_SRC) $(FUZZ_SRC) plugin/main.c controller/main.c webhook/main.c certs/certgen.c standalone/main.c graph/main.c graph/report.c \
                            $(FLEET_SRC) bench/fleet/main.c bench/load.c bench/paths.c bench/client.c bench/writes.c bench/apiserver.c bench/aggregate.c bench/kv.c common/tests/compare/next_times.c))

# TEST chooses programs by name: common/json is build/<flavour>/common/tests/test_json, "kv*" all of these in every
# folder; a dot stands for an underscore. CHANGED=1 chooses those that test what was changed (e2e/tools/changed.sh).
name_of = $(subst /tests/test_,/,$(subst /tests/fuzz/,/,$(1:$(OUT)/%=%)))
wanted = $(subst *,%,$(subst .,_,$(TEST)))
chosen = $(foreach p,$(TESTS) $(FUZZERS),$(if $(filter $(wanted),$(call name_of,$p) $(notdir $(call name_of,$p))),$p))
PROGRAMS = $(if $(TEST),$(or $(strip $(chosen)),$(error no unit test is called '$(TEST)')),$(TESTS) $(FUZZERS))

# make test: every test plain; under a sanitizer those where it has most to find.
# Memory that is handled by hand: parsers, codecs, arenas, buffers, the network, the stores.
QUICK_asan := $(foreach t,$(addprefix common/tests/test_,alloc arena buf c% digest fake_api graph% grpc% http% json% k% l% map mailbox \
    mqtt% name% o% pa% quantity s% timezone token% transport% watch% workqueue yaml% zone) \
    $(addprefix controller/tests/test_,bridge_messages checkpoint_query checkpoints coordinator device_m% device_replay fl_% messages model_s% module_c% module_m% \
    module_s% payload pull_plan regist% training_update update_mail vmafx_getjob vmafx_reconcilers) webhook/tests/test_hostile webhook/tests/test_re% webhook/tests/test_serving \
    $(addprefix certs/tests/test_,cert_make cert_plan certgen) $(addprefix standalone/tests/test_,api_calls api_watch \
    documents kv% patches seats server),$(filter $t,$(TEST_SRC:%.c=%)))
# More than one thread works on the same data.
QUICK_tsan := $(foreach t,$(addprefix common/tests/test_,controller elector% events http_% informer mailbox manager metrics \
    mqtt mqtt_settle store% thread watch_loop workqueue%) $(addprefix controller/tests/test_,bridge% coordinator module_cache process vmafx_reconcilers \
    update_mail wasm_modules) webhook/tests/test_serving $(addprefix standalone/tests/test_,api_turns api_watch collector kv_watch \
    kv_backup in_process server),$(filter $t,$(TEST_SRC:%.c=%)))
QUICK_PROGRAMS := $(if $(filter plain,$(FLAVOUR)),$(TESTS),$(sort $(QUICK_$(FLAVOUR):%=$(OUT)/%)) $(if $(filter asan,$(FLAVOUR)),$(FUZZERS)))

.PHONY: unit unit-changed unit-quick unit-quick-build unit-quick-programs print-quick-programs
ifdef CHANGED
unit: unit-changed
else
unit: $(PROGRAMS) $(BINARIES) ## unit tests and fuzz corpora of one flavour (FLAVOUR=asan TEST="bridge.fence common/json" CHANGED=1)
	@e2e/tools/unit.sh $(PROGRAMS)
endif
# Which test uses which object is known when all of them are compiled.
unit-changed: export TEST_POWER ?= sample
unit-changed: $(TEST_ARCHIVES) $(call objects,$(TEST_SRC) $(FUZZ_SRC))
	@programs=$$(e2e/tools/changed.sh tests $(OUT)) && [ -n "$$programs" ] || { echo "unit: no test knows what was changed"; exit; } && \
	    $(MAKE) $(JOBS) --no-print-directory CHANGED= TEST="$$programs" unit

unit-quick-programs: $(QUICK_PROGRAMS) $(BINARIES)
	@:
unit-quick-build:
	@for flavour in plain asan tsan; do $(MAKE) $(JOBS) --no-print-directory FLAVOUR=$$flavour unit-quick-programs || exit 1; done
unit-quick: unit-quick-build ## unit tests of make test: all of them plain, some under address+undefined and thread sanitizer
	@e2e/tools/unit.sh $(foreach f,plain asan tsan,$$($(MAKE) --no-print-directory FLAVOUR=$f print-quick-programs))
print-quick-programs:
	@echo $(QUICK_PROGRAMS)

# What another process, a busy machine or the order of threads can disturb.
.PHONY: unit-threaded print-threaded-programs
unit-threaded: unit-quick-build
	@e2e/tools/unit.sh $(foreach f,plain tsan,$$($(MAKE) --no-print-directory FLAVOUR=$f print-threaded-programs))
print-threaded-programs:
	@echo $(filter-out $(ONE_THREAD:%.c=$(OUT)/%),$(QUICK_PROGRAMS))

.PHONY: check
check: ## unit tests plain, under address+undefined and under thread sanitizer
	@for flavour in plain asan tsan; do $(MAKE) $(JOBS) --no-print-directory FLAVOUR=$$flavour unit || exit 1; done

.PHONY: fuzz fuzzers
fuzzers: $(FUZZERS)
fuzz: ## libFuzzer on every target, FUZZ_SECONDS (60) each (TARGETS="json yaml": only these)
	@$(MAKE) $(JOBS) --no-print-directory FLAVOUR=fuzz CC=clang fuzzers
	@e2e/tools/fuzz.sh build/fuzz $(TARGETS)

# The times of schedules, for another implementation to compare.
NEXT_TIMES := $(OUT)/common/tests/compare/next_times
$(NEXT_TIMES): $(NEXT_TIMES).o $(OUT)/libcommon.a
	@$(CC) $(LDFLAGS_ALL) -o $@ $^ $(LDLIBS_ALL)
SCHEDULES ?= 4000
SEED ?= 1
.PHONY: schedules
schedules: $(NEXT_TIMES) ## times of random schedules against croniter (SCHEDULES=200000 SEED=random: a long one)
	@e2e/tools/schedules.sh $(NEXT_TIMES) $(SCHEDULES) $(SEED)

GRAPHS ?= 400
.PHONY: graphs
graphs: $(OUT)/bin/propeller-graph ## random files of resources against another reader in Python (GRAPHS=20000 SEED=7: a long one)
	@python3 -B common/tests/compare/graphs.py --program $< --count $(GRAPHS) --seed $(SEED)

AGGREGATIONS ?= 400
.PHONY: aggregators
aggregators: $(AGGREGATE) ## aggregators of federated learning against NumPy (AGGREGATIONS=20000 SEED=7: a long one)
	@e2e/tools/aggregators.sh $(AGGREGATE) $(AGGREGATIONS) $(SEED)

.PHONY: docs man
docs: all ## the documentation as a site, build/docs/html (Sphinx of PyPI)
	@docs/tools/build.sh html
man: all ## the manual pages, build/docs/man
	@docs/tools/build.sh man
PAGES ?= $(wildcard docs/tutorials/*.md docs/how-to/*.md examples/*/README.md)
.PHONY: doc-test
doc-test: all ## the commands of tutorials and how-to pages, on the demo (PAGES=docs/tutorials/laptop.md: of one page)
	@e2e/setup.sh docs examples
	@PATH="$(EXAMPLES_PATH)" python3 -B e2e/tools/doc_commands.py $(PAGES)
# Compilers that are not of Debian.
EXAMPLES_PATH = $$(. e2e/versions.sh && echo "$$EXAMPLES_HOME")/node_modules/.bin:$$(e2e/setup.sh go):$$PATH
.PHONY: examples
examples: all ## each of examples/ built, and its README followed on the demo
	@e2e/setup.sh device docs examples
	@PATH="$(EXAMPLES_PATH)" e2e/tools/examples.sh

.PHONY: alerts metrics-test dashboards dashboard-pictures page-test vendor-page
alerts: ## the alerts of config/metrics, with promtool
	@e2e/setup.sh promtool
	@. e2e/versions.sh && python3 -B e2e/tools/alerts.py "$$PROMTOOL"
metrics-test: all ## alerts, dashboards and metrics of the demo, with promtool and Prometheus of Debian
	@e2e/tools/metrics.sh
dashboard-pictures: all ## pictures of the dashboards with the metrics of the demo, in build/e2e/dashboards
	@PICTURES=build/e2e/dashboards e2e/tools/metrics.sh
page-test: all ## the fleet page of both demos in Chromium, with screenshots in build/e2e/page (needs npm)
	@e2e/tools/page.sh
vendor-page: ## the libraries of the page against npm
	@python3 -B e2e/tools/vendor_page.py
dashboards: ## config/metrics/dashboards from config/metrics/dashboards.py
	@e2e/setup.sh dashboards
	@. e2e/versions.sh && "$$DASHBOARDS_HOME/bin/python" -B config/metrics/dashboards.py config/metrics/dashboards

.PHONY: chart chart-test
chart: all ## the Helm chart, build/release/propeller-VERSION.tgz
	@config/chart/chart.sh
chart-test: chart ## the chart against the overlays, with helm (of Go modules)
	@config/chart/chart.sh test

.PHONY: health
health: ## what kstatus and Argo CD say of stored objects, through their own code (needs go)
	@cd e2e/health && PATH="$$(../setup.sh go):$$PATH" GOFLAGS=-mod=readonly GOTOOLCHAIN=local GOWORK=off \
		go run . objects.yaml ../../config/argocd

.PHONY: s3
s3: $(OUT)/controller/tests/test_model_store_s3 ## the S3 model store against a real server (rclone)
	@e2e/tools/s3.sh $<

# Without the folder, and with a version that is not another one at each commit.
LINT_CFLAGS = $(filter-out -MMD -MP $(PREFIX_MAP),$(CFLAGS_ALL)) -DPROPELLER_VERSION="lint"
.PHONY: lint
lint: $(PROTO).h $(KUBE_PROTO).h ## format, layers, limits, prose, shellcheck; clang, clang-tidy, cppcheck of what was changed (ALL=1: of everything)
	@LINT_CFLAGS='$(LINT_CFLAGS)' LINT_ALL='$(ALL)' e2e/tools/lint.sh

.PHONY: deps
deps: ## bring packages, control plane and Python environment (needs root only if packages are missing)
	@e2e/setup.sh all

.PHONY: demo
demo: ## a Task computed on a device, from nothing (KEEP=1 keeps it, CLUSTER=1 on a real control plane)
	@e2e/demo.sh

.PHONY: demo-modules
demo-modules: ## a Task whose module, signed, comes from a registry that it starts (KEEP=1 keeps it)
	@e2e/demo.sh modules

.PHONY: demo-fl
demo-fl: ## federated learning on eight devices, every model recomputed with NumPy (ROUNDS=20)
	@e2e/demo-fl.sh

.PHONY: e2e
e2e: ## end-to-end cases on a control plane, and on nodes where there are any (CASES="04 07": only these)
	@e2e/all.sh $(CASES)

.PHONY: chaos
chaos: ## faults by a SEED for DURATION (60) seconds under a stream of Tasks (1800: 60 faults, 2,000 Tasks)
	@e2e/chaos/run.sh

KILLS ?= 200
.PHONY: kills
kills: $(OUT)/bin/propeller-standalone ## kill -9 of propeller-standalone under 16 writers, KILLS (200) times, then everything looked at
	@folder=$$(mktemp -d) && python3 -B e2e/standalone/kill.py $< "$$folder" --kills $(KILLS) --seed $(SEED) && rm -r "$$folder"

SEQUENCES ?= 300
.PHONY: differential
differential: all ## random calls to kube-apiserver and to propeller-standalone (SEQUENCES=5000 SEED=7 ONLY=12)
	@e2e/standalone/differential.sh $(SEQUENCES) $(SEED) $(ONLY)

.PHONY: test test-full flakes
test: ## what a change must pass, in ten minutes (STAGE="lint unit": these alone; docs/contributing/testing.md)
	@e2e/test.sh quick $(STAGE)
test-full: ## everything, in stages; a stage that passed for this state is not run again unless named (STAGE=nodes)
	@e2e/test.sh full $(STAGE)
N ?= 20
flakes: ## what threads or time can disturb of make test, N (20) times on one core with a busy neighbour (STAGE=unit: these alone)
	@e2e/test.sh flakes $(N) $(STAGE)

.PHONY: bench
bench: ## memory, latency, throughput and writes beside their budgets (SCENARIOS="tasks": only these)
	@bench/run.sh $(SCENARIOS)

.PHONY: profile
profile: ## where the hot paths spend their instructions (HOT_PATH="plan": only this one)
	@bench/profile.sh $(HOT_PATH)

include config/config.mk

PREFIX ?= /usr/local
.PHONY: install
install: all ## install the programs below PREFIX (/usr/local)
	install -d $(DESTDIR)$(PREFIX)/bin
	install -m 0755 $(BINARIES) plugin/kubectl_complete-propeller $(DESTDIR)$(PREFIX)/bin

.PHONY: clean
clean: ## remove build/ (the control plane's cache outside the tree stays)
	@[ ! -e build/e2e/demo.kept ] || e2e/demo.sh stop
	rm -rf build

.PHONY: help
help: ## this list
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{ printf "  make %-10s %s\n", $$1, $$2 }'

# The simulation: the controller on its own threads, one at a time, with a virtual clock. Its objects stand before the
# archives, so that the linker takes its transport, watch loop and MQTT connection, and not the real ones.
SIM_WRAPPED := pthread_create pthread_join pthread_mutex_lock pthread_mutex_unlock pthread_cond_wait \
               pthread_cond_timedwait pthread_cond_signal pthread_cond_broadcast pthread_rwlock_rdlock \
               pthread_rwlock_wrlock pthread_rwlock_unlock clock_gettime poll write _exit getrandom getentropy RAND_bytes
SIM_SRC := $(wildcard controller/tests/sim/*.c)
SIMULATE := $(OUT)/controller/tests/sim/simulate
$(SIMULATE): LDFLAGS_ALL += $(FAST_LINK)
$(SIMULATE): $(call objects,$(SIM_SRC) controller/tests/device_model.c) \
             $(patsubst %.c,$(OUT)/%.o,$(wildcard common/tests/fake_*.c) common/tests/apply_patch.c) \
             $(addprefix $(OUT)/,libcontroller.a libcerts.a libcommon.a)
	@$(CC) $(LDFLAGS_ALL) $(SIM_WRAPPED:%=-Wl,--wrap=%) -o $@ $^ $(LDLIBS_ALL)
-include $(patsubst %.c,$(OUT)/%.d,$(SIM_SRC))
SEEDS ?= 1000
.PHONY: simulate
simulate: $(SIMULATE) ## whole controllers under a virtual clock, with faults by SEED (1), SEEDS (1000) of them
	@$(SIMULATE) $(SEED) $(SEEDS)

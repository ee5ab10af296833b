# The image and the installation; included by the Makefile.

IMAGE ?= localhost/propeller:$(VERSION)
IMAGE_OUT ?= build/image
REVISION ?= $(shell git rev-parse HEAD 2>/dev/null || echo unknown)$(if $(shell git status --porcelain 2>/dev/null),-dirty)
SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 0)

.PHONY: image
image: all ## OCI image and bill of materials into build/image, without a builder (IMAGE=name:tag)
	@python3 -B config/image/build.py --programs $(OUT)/bin --output $(IMAGE_OUT) --name '$(IMAGE)' \
	    --version '$(VERSION)' --revision '$(REVISION)' --epoch $(SOURCE_DATE_EPOCH)

# What is in the image, into a folder: for builders (config/image/Containerfile).
.PHONY: image-root
image-root: all
	@python3 -B config/image/build.py --programs $(OUT)/bin --root '$(ROOT_OUT)'

# Not in `make test`: it needs root, a builder and package sources.
.PHONY: containerfile
containerfile: image ## build the Containerfile and hold it against that image (root, buildah, mmdebstrap)
	@config/image/containerfile.sh $(abspath build/containerfile) '$(VERSION)' \
	    $(IMAGE_OUT)/propeller.tar $(IMAGE_OUT)/propeller.spdx.json

# The overlays as files for `kubectl apply`, with the image by its digest.
.PHONY: install-yaml
install-yaml: $(if $(findstring @,$(IMAGE)),,image) ## build/release/install.yaml and install-namespaced.yaml (IMAGE=name:tag or name@digest)
	@IMAGE='$(IMAGE)' IMAGE_OUT='$(IMAGE_OUT)' VERSION='$(VERSION)' config/deploy/install-yaml.sh build/release

# Packages of Debian: config/packages.
RELEASE_OUT ?= build/release
deb release cross: export SOURCE_DATE_EPOCH := $(SOURCE_DATE_EPOCH)
.PHONY: deb
deb: all ## Debian packages into build/release (VERSION=0.2.0)
	@e2e/setup.sh deb
	@$(MAKE) --no-print-directory man
	@VERSION='$(VERSION)' config/packages/deb.sh $(OUT)/bin $(RELEASE_OUT)
	@lintian --fail-on error,warning $(RELEASE_OUT)/*_$$(dpkg --print-architecture).deb

# Where the files of a release are served.
RELEASE_URL ?= https://propeller.invalid/v$(VERSION)
# Of this machine, and of these architectures; CROSS= for none.
CROSS ?= arm64
.PHONY: release
release: ## everything of a release into build/release, emptied before (VERSION=0.2.0 IMAGE=name:tag RELEASE_URL=https://... CROSS=arm64)
	@VERSION='$(VERSION)' REVISION='$(REVISION)' CROSS='$(CROSS)' config/packages/release.sh check
	@$(MAKE) --no-print-directory all
	@e2e/setup.sh deb
	@for part in docs man image; do $(MAKE) --no-print-directory $$part || exit 1; done
	@for architecture in $(CROSS); do $(CROSS_BUILD) build $$architecture || exit 1; done
	@VERSION='$(VERSION)' IMAGE='$(IMAGE)' REVISION='$(REVISION)' RELEASE_URL='$(RELEASE_URL)' CROSS='$(CROSS)' \
	    config/packages/release.sh $(OUT)/bin $(RELEASE_OUT)

ARCH ?= arm64
CROSS_BUILD = VERSION='$(VERSION)' IMAGE='$(IMAGE)' REVISION='$(REVISION)' config/packages/cross.sh
.PHONY: cross
cross: man ## programs, packages and image for another architecture, into build/ARCH (ARCH=arm64; root)
	@$(CROSS_BUILD) build $(ARCH)

.PHONY: sign
sign: ## sign the release with cosign (KEY=cosign.key IMAGE=name@sha256:...: also that image in its registry)
	@IMAGE='$(if $(findstring @,$(IMAGE)),$(IMAGE))' config/packages/sign.sh $(RELEASE_OUT) '$(KEY)'

.PHONY: apt-repo
apt-repo: ## a signed apt repository of the packages, build/apt (KEY=fingerprint of a GnuPG key)
	@config/packages/apt-repo.sh $(RELEASE_OUT) build/apt '$(KEY)'

# Not in `make test`: it needs root and package sources, and takes long.
.PHONY: release-test
release-test: ## a release of the newest version, and its tests (root; STAGE="install cross": these alone)
	@config/packages/release-test.sh $(STAGE)

# OVERLAY, KUBECTL, KUBECONFIG and the like: config/deploy/lib.sh.
.PHONY: deploy undeploy
deploy: ## install an overlay into the cluster of KUBECONFIG and wait (OVERLAY=default IMAGE=name:tag)
	@IMAGE='$(IMAGE)' config/deploy/deploy.sh

undeploy: all ## remove it: finalizers released, objects, programs, rights, kinds (OVERLAY=default)
	@IMAGE='$(IMAGE)' config/deploy/undeploy.sh

# slurm_sns: `make` lists the targets. Needs Debian or Ubuntu with git and make; installs the rest with apt.

# Candidates for the Python that makes .venv: the first that is 3.11 or newer is used.
PYTHONS := python3 python3.14 python3.13 python3.12 python3.11
VENV := .venv
PYTHON := $(VENV)/bin/python
# Further options for pytest, as in: make test PYTEST_ARGS="-k matching"
PYTEST_ARGS ?=
# Stop after this many failures: after broken unit tests, nobody needs to wait for those on the cluster.
MAXFAIL ?= 10
# Names containers, network, volumes and image; two clones with two names run side by side.
SNS_PROJECT ?= slurm-sns
# 0: the cluster starts without slurm_sns' scheduler and watchdog.
SNS_AUTOSTART ?= 1
export SNS_PROJECT SNS_AUTOSTART

UNIT_TESTS = $(filter-out tests/__pycache__ tests/alerts tests/clients tests/cluster tests/data tests/packages,$(patsubst %/,%,$(wildcard tests/*/ tests/test_*.py)))
# Tests of the cluster that the run of the unit tests takes over: they use containers of their own, from the mini cluster's
# image; the first three a site, a controller of a thousand nodes and two controllers, the others a second mini cluster.
ASIDE_NAMES = admins_day load takeover arrays model_of_slurm observe owners_edits pools prolog restarts shares_live slurm_alone turns
ASIDE_TESTS = $(wildcard $(ASIDE_NAMES:%=tests/cluster/test_%.py))
CLUSTER_TESTS = $(filter-out $(ASIDE_TESTS),$(wildcard tests/cluster/test_*.py))
PYTEST = $(PYTHON) -m pytest --maxfail=$(MAXFAIL) $(PYTEST_ARGS)

.PHONY: help demo docs locks packages test test-fast test-unit lint cluster-up cluster-down cluster-shell test-tools
.DEFAULT_GOAL := help

help: ## this list
	@echo "Targets:"
	@sed -nE 's/^([a-z-]+):[^#]*## (.*)/  \1\t\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 18
	@echo "Variables:"
	@sed -nE '/^# /{s/^# //;h;d};/^[A-Z_]+ \?=/{s/^([A-Z_]+) \?= *(.*)/  \1=\2/;G;s/\n/\t/;p}' \
		$(firstword $(MAKEFILE_LIST)) | expand -t 26

demo: $(VENV)/.test ## see it work on a small Slurm cluster in containers, then take the cluster down
	@exec containers/cluster.sh run $(PYTHON) containers/demo.py
	@$(PYTHON) containers/demo.py --next

# Those of the second run by two processes; one of them begins with the tests aside, which mostly wait.
BESIDE = $(PYTEST) -n 2 --no-loadscope-reorder $(ASIDE_TESTS) $(UNIT_TESTS)

# Two runs of pytest side by side: the first is busy with the processor for most of the time, the second mostly waits for
# Slurm.
test: $(VENV)/.test test-tools ## all tests: those without Slurm and, at the same time, those on the cluster in containers
	@exec containers/cluster.sh run env SNS_SECOND=1 $(BESIDE) --beside $(PYTEST) $(CLUSTER_TESTS)

# Of the tests without Slurm those for an inner loop: all but the simulated world, reproductions, benchmarks and what is marked
# as long.
test-fast: $(VENV)/.test test-tools ## the quick tests without Slurm, on all cores: a minute and a half on two
	$(PYTEST) -n auto -q -m "not long" $(filter-out tests/world tests/benchmarks,$(UNIT_TESTS)) --ignore tests/sim/pages

test-unit: $(VENV)/.test test-tools ## the tests that need no Slurm
	$(PYTEST) -n auto $(UNIT_TESTS)

.PHONY: test-releases
# Releases of Debian: forky has Slurm 26.05, trixie 24.11.
SUITES ?= trixie forky
test-releases: $(VENV)/.test ## the tests marked `releases` on each release of Slurm, one after the other: make test-releases SUITES=trixie
	@code=0; for suite in $(SUITES); do \
		SNS_SUITE=$$suite SNS_PROJECT=$(SNS_PROJECT)-$$suite containers/cluster.sh run $(PYTEST) -m releases tests/cluster \
			|| code=1; \
	done; exit $$code

.PHONY: test-clients
test-clients: $(VENV)/.test ## client programs (snakemake, ReFrame, submitit, ...) on the cluster; installs them there from PyPI
	@exec containers/cluster.sh run $(PYTEST) tests/clients

.PHONY: test-alerts
test-alerts: $(VENV)/.test ## each alert of conf/ fires once: the cluster with a real Prometheus, five minutes
	@exec containers/cluster.sh run $(PYTEST) tests/alerts

# -W: a warning is an error; -n: so is a reference to nothing; -E: also in a page that has not changed since. The reference is
# made from the code while the site is built.
docs: $(VENV)/.docs ## the documentation as HTML in docs/_build/html; installs Sphinx into .venv
	@PYTHONPATH=docs/_ext $(PYTHON) -m sns_docs.results_table
	@FIRST="less than a minute" containers/timed.sh docs "making docs/_build/html" \
		$(PYTHON) -m sphinx -q -E -W --keep-going -n -j 2 -d docs/_build/doctrees docs docs/_build/html
	@echo "$(CURDIR)/docs/_build/html/index.html"

lint: $(VENV)/.lint ## ruff, mypy, import-linter, and shellcheck where it is installed
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports
	! command -v shellcheck > /dev/null || shellcheck -x containers/*.sh containers/packaging/scripts/*.sh .ci/run $$(grep -l '^#!/bin/bash' containers/bin/*)

# Of pyproject.toml, for every Python from 3.11 on; newer versions than those in the files are taken.
LOCK = $(VENV)/bin/uv pip compile --quiet --no-config --upgrade --universal --python-version 3.11 --generate-hashes \
	--custom-compile-command "make locks"
locks: $(VENV)/.uv ## renew the lock files of the packages: newest versions, with hashes
	$(LOCK) -o containers/packaging/node.lock pyproject.toml
	$(LOCK) -o containers/packaging/controller.lock --extra controller pyproject.toml
	$(LOCK) -o containers/packaging/tools.lock containers/packaging/tools.in

packages: ## the packages, .deb and .rpm, below dist/packages; built in a container
	@containers/cluster.sh packages

.PHONY: test-packages
test-packages: $(VENV)/.test ## the packages in a container where systemd runs: installed, upgraded, purged
	@containers/docker.sh ensure; code=0; $(PYTEST) -s tests/packages || code=$$?; containers/docker.sh release; exit $$code

.PHONY: faults
# Schedules of faults that `make faults` runs.
SCHEDULES ?= 1000000
# The first seed of `make faults`: other ones each day.
SEED ?= $(shell date +%Y%m%d)000000
faults: $(VENV)/.test ## many schedules of faults in a simulated world, on all cores: make faults SCHEDULES=1000000 SEED=7
	PYTHONPATH=tests $(PYTHON) -m world $(SCHEDULES) --seed $(SEED)
	PYTHONPATH=tests $(PYTHON) -m world $$(($(SCHEDULES) / 10)) --seed $(SEED) --preempting

cluster-up: ## start the cluster in containers and leave it running
	@containers/cluster.sh up

cluster-down: ## remove the cluster: containers, network, volumes
	@containers/cluster.sh down

cluster-shell: ## a shell on the controller as alice; another user with USER=root, slurm or bob
	@containers/cluster.sh shell $(if $(findstring command,$(origin USER)),$(USER),alice)

# For the tests of the submit filter, which run it in Debian's Lua 5.1, and of the SPANK plugin, which compile it; for
# those of resctrl, which mount an emulated one (fuse3 brings libfuse), and let Intel's pqos use it, where there is one; for
# those of the store, which start MariaDB and PostgreSQL in temporary directories; for those of the page, a browser.
test-tools: $(VENV)/bin/promtool
	@containers/packages.sh lua5.1 gcc:build-essential fusermount3:fuse3 mariadbd:mariadb-server-core postgres:postgresql chromium \
		$(if $(filter x86_64,$(shell uname -m)),pqos:intel-cmt-cat)

# The tests of the alert rules need this one program. Debian 12 has it in its package prometheus, which would start a service.
$(VENV)/bin/promtool: | $(VENV)/bin/python
	@containers/packages.sh --take /usr/bin/promtool $@ promtool prometheus

$(VENV)/bin/python:
	@python=; for candidate in $(PYTHONS); do \
		if $$candidate -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2> /dev/null; then python=$$candidate; break; fi; \
	done; \
	if [ -z "$$python" ]; then containers/packages.sh python3; python=python3; fi; \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed, not " + sys.version)'; \
	$$python -c 'import ensurepip' 2> /dev/null || containers/packages.sh none:python3-venv; \
	FIRST="less than a minute" containers/timed.sh venv "making $(VENV)" $$python -m venv $(VENV)

# Errors of pip are shown. Its notices are not: on packages that one of several sources lacks, on newer versions of pip.
PIP_INSTALL = $(PYTHON) -m pip install -qq --disable-pip-version-check --root-user-action=ignore

# Stamp files: make installs again when pyproject.toml changes.
$(VENV)/.test: pyproject.toml $(VENV)/bin/python
	@containers/timed.sh install "installing slurm_sns and its tests' requirements into $(VENV)" \
		$(PIP_INSTALL) -e '.[controller,simulate,test]'
	@touch $@

$(VENV)/.docs: pyproject.toml $(VENV)/bin/python
	@FIRST="half a minute" containers/timed.sh docs-tools "installing Sphinx into $(VENV)" $(PIP_INSTALL) -e '.[docs]'
	@touch $@

$(VENV)/.uv: $(VENV)/bin/python
	@$(PIP_INSTALL) 'uv>=0.9'
	@touch $@

$(VENV)/.lint: pyproject.toml $(VENV)/.test
	@FIRST="about a minute" containers/timed.sh linters "installing the linters into $(VENV)" $(PIP_INSTALL) -e '.[lint]'
	@touch $@

# weaklink: what one can do with a checkout. `make` lists it.
SHELL := /bin/bash
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

PY := .venv/bin/python
LAB := PYTHONPATH=molecule/cluster $(PY) -m lab
export PYTHONDONTWRITEBYTECODE ?= 1

.PHONY: help bootstrap demo test test-fast lint bench dist lab-up lab-down lab-reset lab-ssh lab-status

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

bootstrap: ## make the host ready: Debian packages, .venv (Debian 12, root; fast when nothing changed)
	@tools/bootstrap.sh

demo: bootstrap ## bring up a cluster in virtual machines, break a link, watch it being found
	@PYTHONPATH=molecule/cluster $(PY) -m tests.lab.demo

test: bootstrap ## all tests, with the time of each stage
	@$(PY) tools/test.py

test-fast: bootstrap ## the tests that need no virtual machines
	@$(PY) tools/test.py --fast

lint: bootstrap ## formatters and linters, types
	@tools/lint.sh

bench: bootstrap ## long and large measurements
	@$(PY) -m pytest -q -s -p no:cacheprovider tests/bench

dist: bootstrap ## what one installs from: collection, zipapp, packages
	@$(PY) tools/dist.py

lab-up: bootstrap ## start the lab: ctl and LAB_COMPUTE (3) compute nodes, ssh-able
	@$(LAB) up

lab-down: bootstrap ## end the lab and clear away all that it left
	@$(LAB) down

lab-reset: bootstrap ## back to SNAPSHOT=booted|provisioned (default: the latter where it exists), in seconds
	@$(LAB) reset $(SNAPSHOT)

lab-ssh: bootstrap ## NODE=c1 [CMD=...]: a shell or a command on a node
	@$(LAB) ssh $(or $(NODE),$(error NODE is missing: make lab-ssh NODE=c1 CMD='uptime')) -- $(if $(CMD),'$(subst ','\'',$(CMD))')

lab-status: bootstrap ## what runs, which snapshots there are
	@$(LAB) status

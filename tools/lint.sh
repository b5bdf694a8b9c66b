#!/bin/bash
# Every linter over the whole tree; all of them run, and any complaint fails.
set -u
cd "$(dirname "$0")/.." || exit 2
PATH="$PWD/.venv/bin:$PATH"
export ANSIBLE_COLLECTIONS_PATH="$PWD/.collections"
failed=()

lint() {
    local name=$1 begun=$SECONDS
    shift
    if "$@"; then
        printf 'ok      %-14s %3ds\n' "$name" $((SECONDS - begun))
    else
        printf 'FAILED  %-14s %3ds\n' "$name" $((SECONDS - begun))
        failed+=("$name")
    fi
}

lint ruff ruff check --quiet .
lint ruff-format ruff format --quiet --check .
lint mypy mypy slurm/weaklink molecule/cluster/lab tools plugins
lint yamllint yamllint --strict .
lint ansible-lint ansible-lint --offline --profile production -q
for file in slurm/*.lua; do
    lint "luac $(basename "$file")" luac5.1 -p "$file"
done

if [ ${#failed[@]} -gt 0 ]; then
    echo "lint: failed: ${failed[*]}" >&2
    exit 1
fi

// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"strings"
)

// isShadowingName reports whether a function of this name would hide a builtin or a
// program that a policy may know by name.
func isShadowingName(name string) bool {
	if builtins[name] != nil || shells[name] || wrapperOf(name) != nil || knownPrograms[name] {
		return true
	}
	return strings.HasPrefix(name, "command_not_found") || strings.HasPrefix(name, "python") ||
		strings.HasPrefix(name, "git-")
}

var knownPrograms = nameSet(`
	: break continue cd echo exit pwd return shift times umask true false type ulimit jobs kill fg bg disown suspend logout history help caller
	pushd popd dirs let wait test
	go gofmt gofumpt goimports golangci-lint staticcheck govulncheck dlv pytest pip pip3 pipx uv uvx poetry pipenv tox nox ruff mypy black isort
	flake8 pylint bandit coverage node nodejs npm npx pnpm yarn bun deno corepack tsc eslint prettier jest vitest mocha tsx ts-node cargo rustc
	rustup mvn gradle java javac make cmake ninja bazel gcc cc clang g++ ld as ar ruby gem bundle rake perl php lua dotnet swift zig ghc git gh hg svn
	rg grep egrep fgrep find ls cat head tail sed awk gawk mawk nawk jq yq diff cmp sort uniq wc tr cut tee xargs test echo printf rm mv cp ln mkdir
	rmdir touch chmod chown chgrp dd install stat file du df ps id whoami uname hostname date sleep env which basename dirname realpath readlink
	mktemp seq nproc yes expr bc dc od xxd hexdump base64 md5sum sha1sum sha256sum tar gzip gunzip zip unzip bzip2 xz zstd curl wget nc ncat socat ssh scp
	sftp rsync ftp telnet dig nslookup host ping ip ifconfig docker podman kubectl helm terraform aws gcloud az openssl gpg vi vim nano ed ex emacs
	less more man shellcheck shfmt hadolint actionlint apt apt-get dpkg yum dnf apk brew systemctl service mount umount crontab kill pkill killall
	column comm paste join fold fmt nl rev tac split csplit tsort shuf numfmt truncate sync tree patch strings nm objdump readelf gdb
`)

func nameSet(text string) map[string]bool {
	names := map[string]bool{}
	for name := range strings.FieldsSeq(text) {
		names[name] = true
	}
	return names
}

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The script of the action's only step. It gets the fumehood in release.env, installs it
# as root where only root can change it, and execs `fumehood action`.
#
# It promises that the started program has the digests in release.env, which is part of
# the same commit as this script. The bytes, downloaded or from the tool cache, are hashed
# at every use. root hashes them again in root's own copy, which is what runs (place.sh).
# If a check fails, the script reports it and starts nothing; there is no fallback and no
# way to skip a check.
#
# It does not protect against earlier steps of the same job: they have the same user and
# the same sudo. It only avoids using what they left in PATH, the environment or the tool
# cache, which outlives a job on a reused runner.
#
# Read from the environment: the runner's RUNNER_TEMP, RUNNER_TOOL_CACHE and
# GITHUB_OUTPUT, the action's INPUT_PHASE, and
#   FUMEHOOD_RELEASE_URL  where to download from instead: a mirror, same digests
#   FUMEHOOD_INSTALL_DIR  where root puts it instead of /var/lib/fumehood
#   FUMEHOOD_FROM_SOURCE  1: build from this checkout, whatever release.env says
set -euo pipefail
umask 022

# On hosted runners every user can write to /usr/local/bin.
job_path=$PATH
PATH=/usr/sbin:/usr/bin:/sbin:/bin
unset LD_PRELOAD LD_LIBRARY_PATH LD_AUDIT

scratch=
action=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
max_archive=$((256 << 20)) # bytes; an archive has about 20 MiB

# printable WORD… prints untrusted text without control characters.
printable() {
	printf '%s' "$*" | LC_ALL=C tr -c '\40-\176' '?'
}

# refuse CODE MESSAGE HINT ends the step with exit code 3: fumehood failed and ran
# nothing. The annotation is always one line.
refuse() {
	local message hint=$3
	message=$(printable "$2")
	printf 'fumehood: %s: %s\n' "$1" "$message" >&2
	printf 'fumehood: hint: %s\n' "$hint" >&2
	message="$message
$hint"
	message=${message//'%'/%25}
	message=${message//$'\r'/%0D}
	printf '::error title=fumehood%%3A %s::%s\n' "$1" "${message//$'\n'/%0A}"
	if [ -n "${GITHUB_OUTPUT:-}" ]; then
		printf 'conclusion=error\n' >>"$GITHUB_OUTPUT"
	fi
	if [ -n "${scratch:-}" ]; then
		rm -rf "$scratch"
	fi
	exit 3
}

# check_system sets arch. It must also work in bash before version 4.
check_system() {
	local system machine tool
	system=$(uname -s)
	machine=$(uname -m)
	if [ "$system" != Linux ]; then
		refuse install.system "this runner is $system; gVisor needs Linux" 'jobs:
  fumehood:
    runs-on: ubuntu-24.04'
	fi
	case $machine in
	x86_64) arch=amd64 ;;
	aarch64) arch=arm64 ;;
	*) refuse install.system "unsupported architecture $machine" 'jobs:
  fumehood:
    runs-on: ubuntu-24.04 # or ubuntu-24.04-arm' ;;
	esac
	for tool in curl tar gzip sha256sum; do
		if [ -z "$(type -P "$tool")" ]; then
			refuse install.tool "this runner has no $tool in $PATH" "install $tool in the runner's image"
		fi
	done
}

# read_release FILE reads lines of KEY=VALUE into release; nothing in it is run.
read_release() {
	local key value
	release=()
	while IFS='=' read -r key value || [ -n "$key" ]; do
		case $key in
		'' | '#'*) continue ;;
		VERSION) valid_release "$key" "$value" '^(source|v[0-9]+\.[0-9]+\.[0-9]+(-[0-9a-z.]+)?)$' ;;
		URL) valid_release "$key" "$value" '^https://[A-Za-z0-9./_-]+$' ;;
		SHA256_*) valid_release "$key" "$value" '^[0-9a-f]{64}$' ;;
		GO | CC) continue ;;
		*) refuse install.release "invalid release.env: unknown key $key" "use the action at a tag or a commit of main" ;;
		esac
		release[$key]=$value
	done <"$1"
}

valid_release() {
	if [[ ! $2 =~ $3 ]]; then
		refuse install.release "invalid release.env: $1=$2" "use the action at a tag or a commit of main"
	fi
}

# check_release sets sums to the digests of this machine's archive and programs.
check_release() {
	local name key
	sums=()
	for name in ARCHIVE FUMEHOOD RUNSC; do
		key=SHA256_${name}_${arch^^}
		if [ -z "${release[$key]:-}" ]; then
			refuse install.release "release.env has no $key" "use the action at a tag or a commit of main"
		fi
		sums+=("${release[$key]}")
	done
}

# get_release sets archive to a file with the right digest: from the tool cache, or
# downloaded and then kept there.
get_release() {
	local version=${release[VERSION]} name cache=
	name=fumehood_${version}_linux_$arch.tar.gz
	if [ -n "${RUNNER_TOOL_CACHE:-}" ]; then
		cache=$RUNNER_TOOL_CACHE/fumehood/$version/$arch/$name
	fi
	if [ -n "$cache" ] && { [ -e "$cache" ] || [ -L "$cache" ]; }; then
		if [ -L "$cache" ] || [ ! -f "$cache" ]; then
			refuse install.cache "$cache in the tool cache is not a file" "remove $(printable "$cache")"
		fi
		origin="the tool cache"
		check_digest "$cache" "$cache in the tool cache" "remove it: an earlier job on this runner changed it. Do not reuse a runner that ran untrusted code outside a sandbox"
		archive=$cache
		return
	fi
	archive=$scratch/$name
	download "$name" "$archive"
	origin=$base
	check_digest "$archive" "$name from $base" "if this is not your own mirror (FUMEHOOD_RELEASE_URL), report it: https://github.com/fumehood/fumehood/security"
	if [ -n "$cache" ]; then
		keep "$archive" "$cache"
	fi
}

# download NAME FILE sets base. Bytes, time and redirects are bounded, because
# the data is untrusted until its digest is checked.
download() {
	local proto='=https'
	base=${FUMEHOOD_RELEASE_URL:-${release[URL]:-}}
	base=${base%/}
	if [[ $base =~ ^http://(127\.0\.0\.1|localhost|\[::1\])(:[0-9]+)?(/[A-Za-z0-9._~/-]*)?$ ]]; then
		proto='=http' # loopback
	elif [[ ! $base =~ ^https://[A-Za-z0-9.-]+(:[0-9]+)?(/[A-Za-z0-9._~/-]*)?$ ]]; then
		refuse install.url "cannot download from $base" 'env:
  FUMEHOOD_RELEASE_URL: https://mirror.example/fumehood'
	fi
	# --disable: no .curlrc. ulimit: a server may send more than it declares.
	if ! (
		ulimit -f $((max_archive / 1024))
		exec curl --disable --fail --silent --show-error --globoff --location --max-redirs 5 \
			--proto "$proto" --proto-redir "$proto" --connect-timeout 20 --max-time 300 \
			--retry 3 --retry-connrefused --retry-max-time 300 --max-filesize "$max_archive" \
			--output "$2" "$base/$1"
	); then
		refuse install.download "cannot download $base/$1" "run the job again; on a runner without access to GitHub's releases, set FUMEHOOD_RELEASE_URL to a mirror"
	fi
}

# check_digest FILE ORIGIN HINT
check_digest() {
	local got
	got=$(sha256sum <"$1")
	if [ "${got%% *}" != "${sums[0]}" ]; then
		refuse install.digest "$2 has SHA-256 ${got%% *}, want ${sums[0]} as in release.env" "$3"
	fi
}

# keep FILE DESTINATION copies a checked archive to the tool cache, atomically. If the
# cache cannot be written, the next job downloads again.
keep() {
	local dir new
	dir=$(dirname "$2")
	if mkdir -p "$dir" 2>/dev/null && new=$(mktemp "$dir/.new-XXXXXX" 2>/dev/null) && cp "$1" "$new" && mv -T "$new" "$2"; then
		return
	fi
	rm -f "${new:-}"
	printf 'fumehood: cannot write to the tool cache %s\n' "$(printable "$dir")" >&2
}

# build sets archive and release from this checkout. It requires Go and takes a minute or
# two. The programs are then checked and installed like those of a release.
build() {
	if [ ! -f "$action/go.mod" ] || ! grep -qx 'module github.com/fumehood/fumehood' "$action/go.mod"; then
		refuse install.source "$action is not a checkout of fumehood" "use the action at a tag, such as fumehood/fumehood@v1"
	fi
	if [ -z "$(PATH=$job_path type -P go)" ]; then
		refuse install.source "the action at this commit is built from source and requires Go" '- uses: actions/setup-go@v6
  with:
    go-version: stable
    cache: false # or use the action at a tag, which needs no Go'
	fi
	printf '::group::build fumehood from source\n'
	if ! (cd "$action" && PATH=$job_path GOFLAGS=-mod=readonly GOWORK=off CGO_ENABLED=0 \
		go run -trimpath -buildvcs=false ./cmd/fumehood-release --arch "$arch" --out "$scratch/build"); then
		printf '::endgroup::\n'
		refuse install.source "cannot build fumehood from $action" "see the compiler's output above, or use the action at a tag, such as fumehood/fumehood@v1"
	fi
	printf '::endgroup::\n'
	read_release "$scratch/build/release.env"
	check_release
	archive=$scratch/build/fumehood_source_linux_$arch.tar.gz
	origin=$action
}

# place sets dir to a directory with the checked programs. If sandboxes are started, only
# root may be able to change it, because parts of it run as root. The archive is passed on
# stdin, so that root opens no path of this user.
place() {
	local answer code message hint as_root=() how=root target=${FUMEHOOD_INSTALL_DIR:-/var/lib/fumehood}
	case ${INPUT_PHASE:-auto} in
	report | trigger) # no sandbox, so root is not required
		how=own
		target=$scratch/bin
		;;
	*)
		if [ "$(id -u)" != 0 ]; then
			check_sudo
			as_root=(sudo -n)
		fi
		;;
	esac
	if ! answer=$("${as_root[@]}" /usr/bin/env -i "PATH=$PATH" /bin/bash -p "$action/.github/action/place.sh" \
		"$how" "$target" "${sums[@]}" <"$archive"); then
		IFS=$'\t' read -r code message hint <<<"$answer"
		refuse "${code:-install.root}" "${message:-cannot install fumehood as root}" "${hint:-see the output of sudo above}"
	fi
	dir=$answer
}

check_sudo() {
	local output
	if ! output=$(sudo -n /usr/bin/true 2>&1); then
		refuse install.root "root must start sandboxes, but sudo does not work without a password here: $output" 'use a separate job on a hosted runner (actions such as openai/codex-action permanently remove sudo from their job); on a self-hosted runner, allow its user
  runner ALL=(root) NOPASSWD: ALL
or run the runner as root. A job that only reports does not need root: phase: report'
	fi
}

check_system
declare -A release
read_release "$action/release.env"
scratch=$(mktemp -d "${RUNNER_TEMP:-/tmp}/fumehood-XXXXXXXX")
if [ "${release[VERSION]:-source}" = source ] || [ "${FUMEHOOD_FROM_SOURCE:-}" = 1 ]; then
	build
else
	check_release
	get_release
fi
place
if [ "$archive" != "${archive#"$scratch"/}" ]; then
	rm -rf "$archive" "$scratch/build"
fi
rmdir "$scratch" 2>/dev/null || true # not empty if the programs are in it
printf 'fumehood %s for linux/%s, SHA-256 %s, from %s\n' "${release[VERSION]}" "$arch" "${sums[0]}" "$(printable "$origin")"
export PATH=$job_path
exec "$dir/fumehood" action

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
# If release.env says "source", the action is built from this checkout, or an earlier build
# of the same sources is used, if its digest can be trusted: see find_source.
#
# It does not protect against earlier steps of the same job: they have the same user and
# the same sudo. It only avoids using what they left in PATH, the environment or the tool
# cache, which outlives a job on a reused runner. A build trusts the Go in PATH and the
# caches of Go in the user's home.
#
# Read from the environment: the runner's RUNNER_TEMP, RUNNER_TOOL_CACHE and
# GITHUB_OUTPUT, the action's INPUT_PHASE, and
#   FUMEHOOD_RELEASE_URL  where to download from instead: a mirror, same digests
#   FUMEHOOD_INSTALL_DIR  where root puts it instead of /var/lib/fumehood
#   FUMEHOOD_FROM_SOURCE  1: build from this checkout, whatever release.env says
#   FUMEHOOD_SOURCE_CACHE a directory in RUNNER_TEMP with a build of this checkout, which
#                         only runs of the default branch can have written
set -euo pipefail
umask 022

# On hosted runners every user can write to /usr/local/bin.
job_path=$PATH
PATH=/usr/sbin:/usr/bin:/sbin:/bin
unset LD_PRELOAD LD_LIBRARY_PATH LD_AUDIT
# Keys are for fumehood alone, not for what this script starts.
keys=(ANTHROPIC_API_KEY OPENAI_API_KEY GEMINI_API_KEY INPUT_AUDIT_KEY)
export -n "${keys[@]}"

scratch=
action=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
max_archive=$((256 << 20)) # bytes; an archive has about 20 MiB
install_dir=${FUMEHOOD_INSTALL_DIR:-/var/lib/fumehood}
source= # digest of the sources that this job built

# printable WORD… prints untrusted text without control characters.
printable() {
	printf '%s' "$*" | LC_ALL=C tr -c '\40-\176' '?'
}

# annotate LEVEL CODE MESSAGE HINT. The annotation is always one line.
annotate() {
	local message hint=$4
	message=$(printable "$3")
	printf 'fumehood: %s: %s\n' "$2" "$message" >&2
	printf 'fumehood: hint: %s\n' "$hint" >&2
	message="$message
$hint"
	message=${message//'%'/%25}
	message=${message//$'\r'/%0D}
	printf '::%s title=fumehood%%3A %s::%s\n' "$1" "$2" "${message//$'\n'/%0A}"
}

# refuse CODE MESSAGE HINT ends the step with exit code 3: fumehood failed and ran
# nothing.
refuse() {
	annotate error "$@"
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
		SOURCE | SHA256_*) valid_release "$key" "$value" '^[0-9a-f]{64}$' ;;
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
	if [ -n "$cache" ] && cached "$cache"; then
		origin="the tool cache"
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

# cached FILE succeeds if FILE in the tool cache is the archive with the digest sums[0].
# Anything else there is removed with a warning, and gets replaced. It is not a reason to
# refuse: whoever can write there could block every later job on the runner, and a copy
# that was cut short looks the same.
cached() {
	local problem got=
	if [ ! -e "$1" ] && [ ! -L "$1" ]; then
		return 1
	elif [ -L "$1" ] || [ ! -f "$1" ]; then
		problem="is not a file"
	elif [ "$(stat -c %s -- "$1")" -gt "$max_archive" ]; then
		problem="has more than $max_archive bytes"
	elif got=$(sha256sum <"$1") && [ "${got%% *}" = "${sums[0]}" ]; then
		return 0
	else
		problem="has SHA-256 ${got%% *}, want ${sums[0]}"
	fi
	annotate warning install.cache "$1 in the tool cache $problem, and is replaced" \
		"find out whether a job was interrupted or changed it: do not reuse a runner that ran untrusted code outside a sandbox"
	rm -rf -- "$1" || true
	return 1
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

# source_digest prints the digest of everything that a build from this checkout reads.
# tools/release writes the same to release.env, as SOURCE.
source_digest() {
	local digest
	digest=$(cd "$action" && LC_ALL=C find go.mod go.sum LICENSE cmd internal pkg policies testdata tools ! -type d -print0 |
		LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum) || return
	printf '%s' "${digest%% *}"
}

# find_source sets archive and release or sums to an earlier build of the same sources, if
# there is one to trust. The sources do not determine the digest of a build, so it matters
# who recorded it:
#
# - FUMEHOOD_SOURCE_CACHE is what a step of this job restored with actions/cache: the runner
#   empties RUNNER_TEMP before each job. The workflow that saves it runs on pushes to the
#   default branch only. Runs on the default branch (workflow_run, issue_comment) read only
#   that branch's entries, so a pull request cannot write what a job with a token that
#   writes reads. A run of a pull request also reads entries that the same pull request
#   wrote: it then runs what its author chose, as it would with a changed workflow, in a job
#   with a read-only token and no secrets.
# - The tool cache outlives the job, and any job can write to it. Its archive counts only
#   with the digest that root recorded when it installed that build (place.sh).
find_source() {
	local cache=${FUMEHOOD_SOURCE_CACHE:-}
	if [ -n "$cache" ]; then
		if [[ $cache/ != "${RUNNER_TEMP:-/nonexistent}"/* || $cache/ == */../* ]]; then
			refuse install.cache "FUMEHOOD_SOURCE_CACHE is not in RUNNER_TEMP: $cache" "env:
  FUMEHOOD_SOURCE_CACHE: \${{ runner.temp }}/fumehood-source"
		fi
		restored "$cache" && return
	fi
	if [ -n "$tool_cache" ] && recorded "$record" && cached "$tool_cache"; then
		archive=$tool_cache
		origin="the tool cache, built from the same sources"
		release=([VERSION]=source)
		return
	fi
	return 1
}

# restored DIR reads a build of these sources from DIR. A build that is damaged, or of other
# sources, is not used.
restored() {
	local file size=$((1 << 16))
	if [ ! -e "$1" ]; then
		return 1 # no entry for this commit
	fi
	archive=$1/fumehood_source_linux_$arch.tar.gz
	for file in "$1/release.env" "$archive"; do
		if [ -L "$file" ] || [ ! -f "$file" ] || [ "$(stat -c %s -- "$file")" -gt "$size" ]; then
			ignored "$1 has no $(basename "$file") of at most $size bytes"
			return 1
		fi
		size=$max_archive
	done
	if ! (
		refuse() { exit 1; } # the message would end the step
		read_release "$1/release.env"
		check_release
	); then
		ignored "$1/release.env is damaged"
		return 1
	fi
	read_release "$1/release.env"
	check_release
	if [ "${release[VERSION]:-}:${release[SOURCE]:-}" != "source:$source" ]; then
		ignored "$1 was built from other sources"
		return 1
	fi
	if ! printf '%s  %s\n' "${sums[0]}" "$archive" | sha256sum --status -c; then
		ignored "$archive does not have the digest ${sums[0]}"
		return 1
	fi
	origin=$1
}

# ignored REASON reports a restored build that is not used.
ignored() {
	annotate warning install.cache "cannot use the restored build: $1" "delete the cache entry of this commit; fumehood is built from source instead"
}

# recorded FILE sets sums to what root recorded. Every directory of the path must be root's,
# and nobody else's to change.
recorded() {
	local path=$1 line
	while [ "$path" != / ]; do
		case $(stat -c '%u %a %F' -- "$path" 2>/dev/null) in
		*' symbolic link' | "0 "*[2367]' '* | "0 "*[2367]?' '*) return 1 ;;
		"0 "*) path=$(dirname "$path") ;;
		*) return 1 ;;
		esac
	done
	line=$(head -c 256 -- "$1")
	if [[ ! $line =~ ^[0-9a-f]{64}\ [0-9a-f]{64}\ [0-9a-f]{64}$ ]]; then
		return 1
	fi
	read -r -a sums <<<"$line"
}

# build sets archive and release from this checkout. Without an earlier build it requires
# Go, takes some minutes, and keeps the archive in the tool cache. The programs are then
# checked and installed like those of a release.
build() {
	local tool_cache='' record
	if [ ! -f "$action/go.mod" ] || ! grep -qx 'module github.com/fumehood/fumehood' "$action/go.mod"; then
		refuse install.source "$action is not a checkout of fumehood" "use the action at a tag, such as fumehood/fumehood@v1"
	fi
	if ! source=$(source_digest); then
		refuse install.source "cannot read the sources in $action" "use a complete checkout of fumehood, or the action at a tag"
	fi
	record=$install_dir/source-$source
	if [ -n "${RUNNER_TOOL_CACHE:-}" ]; then
		tool_cache=$RUNNER_TOOL_CACHE/fumehood/source-$source/$arch/fumehood_source_linux_$arch.tar.gz
	fi
	if find_source; then
		source= # only a build is recorded
		return
	fi
	if [ -z "$(PATH=$job_path type -P go)" ]; then
		refuse install.source "the action at this commit is built from source and requires Go" '- uses: actions/setup-go@v6
  with:
    go-version: stable
    cache: false # or use the action at a tag, which needs no Go'
	fi
	printf '::group::build fumehood from source\n'
	if ! (cd "$action" && PATH=$job_path GOFLAGS=-mod=readonly GOWORK=off CGO_ENABLED=0 \
		go run -trimpath -buildvcs=false ./tools/release --arch "$arch" --out "$scratch/build"); then
		printf '::endgroup::\n'
		refuse install.source "cannot build fumehood from $action" "see the compiler's output above, or use the action at a tag, such as fumehood/fumehood@v1"
	fi
	printf '::endgroup::\n'
	read_release "$scratch/build/release.env"
	check_release
	archive=$scratch/build/fumehood_source_linux_$arch.tar.gz
	origin=$action
	if [ -n "$tool_cache" ]; then
		keep "$archive" "$tool_cache"
	fi
}

# place sets dir to a directory with the checked programs. If sandboxes are started, only
# root may be able to change it, because parts of it run as root. The archive is passed on
# stdin, so that root opens no path of this user.
place() {
	local answer code message hint as_root=() how=root target=$install_dir
	case ${INPUT_PHASE:-auto} in
	report | trigger | find) # no sandbox, so root is not required
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
		"$how" "$target" "${sums[@]}" "$source" <"$archive"); then
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
export PATH=$job_path "${keys[@]}"
exec "$dir/fumehood" action

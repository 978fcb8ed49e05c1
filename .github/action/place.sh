#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# place.sh HOW DIR ARCHIVE-SHA256 FUMEHOOD-SHA256 RUNSC-SHA256 SOURCE-SHA256 < ARCHIVE
#
# Unpacks an archive's programs to DIR/ARCHIVE-SHA256 and prints that path. If it refuses,
# it prints "code TAB message TAB hint" and exits with 3. With HOW root it runs as root, and
# only root can change the directory that it prints: it copies the archive from stdin to a
# directory of root's, hashes that copy, unpacks it, hashes the programs, and only then
# renames the directory. No other user can change a byte between the check and the use. HOW
# own is for jobs without a sandbox: DIR belongs to the caller, who must protect it.
#
# SOURCE-SHA256 is empty, or the digest of the sources from which the caller built the
# archive. With HOW root the three digests are recorded for it, in a file that only root can
# change, so that later jobs can use the same build.
#
# It does not check gvisor-bin and fumehood-init: fumehood checks them before each start,
# by the manifest whose digest is linked into it.
set -euo pipefail
umask 022

how=$1 dir=$2 archive_sum=$3 fumehood_sum=$4 runsc_sum=$5 source_sum=${6:-}
me=$(id -u)

refuse() {
	printf '%s\t%s\t%s\n' "$1" "$(printf '%s' "$2" | LC_ALL=C tr -c '\40-\176' '?')" "$3"
	exit 3
}

# check_owned PATH refuses a path that another user could change or replace.
check_owned() {
	local seen
	seen=$(stat -c '%u %a %F' -- "$1") || refuse install.folder "cannot create or read $1" "use another directory in FUMEHOOD_INSTALL_DIR"
	case $seen in
	"$me "*' symbolic link') refuse install.folder "$1 is a symbolic link" "remove it, or use another directory in FUMEHOOD_INSTALL_DIR" ;;
	"$me "*[2367]' '* | "$me "*[2367]?' '*) refuse install.folder "$1 is writable by other users (owner, mode and kind: $seen)" "run chmod go-w on it, or use another directory in FUMEHOOD_INSTALL_DIR" ;;
	"$me "*) ;;
	*) refuse install.folder "$1 does not belong to user $me (owner, mode and kind: $seen)" "use another directory in FUMEHOOD_INSTALL_DIR" ;;
	esac
}

# make_directory PATH creates it with its parents, which must all belong to root.
make_directory() {
	local path='' part
	if [[ ! $1 =~ ^(/[A-Za-z0-9_][A-Za-z0-9._-]*)+$ ]]; then
		refuse install.folder "invalid installation path $1" "use an absolute path of letters, digits, dots, hyphens and underscores in FUMEHOOD_INSTALL_DIR"
	fi
	check_owned /
	while IFS= read -r part; do
		path=$path/$part
		mkdir -m 755 -- "$path" 2>/dev/null || true
		check_owned "$path"
	done < <(tr / '\n' <<<"${1#/}")
}

# check_members refuses an archive with members that no release has, by their kind and
# name.
check_members() {
	local kind name
	while read -r kind _ _ _ _ name; do
		case ${kind:0:1}:$name in
		-:fumehood | -:fumehood-init | -:fumehood-runsc | -:fumehood-runsc.json | -:LICENSE | -:THIRD_PARTY_NOTICES) ;;
		-:gvisor-bin/gvisor-sentry-prewarmer | d:gvisor-bin/) ;;
		'h:gvisor-bin/gvisor_sentry link to fumehood-runsc') ;;
		*) refuse install.archive "unexpected member in the archive: $kind $name" "report it: https://github.com/fumehood/fumehood/security" ;;
		esac
	done < <(LC_ALL=C TZ=UTC tar --quoting-style=escape --numeric-owner -tvzf "$1")
}

# check_programs DIR refuses programs that differ from the release or that others can
# change.
check_programs() {
	local path
	while IFS= read -r -d '' path; do
		check_owned "$path"
	done < <(find "$1" -print0)
	check_sum "$1/fumehood" "$fumehood_sum"
	check_sum "$1/fumehood-runsc" "$runsc_sum"
}

# check_sum FILE WANT
check_sum() {
	local got
	got=$(sha256sum <"$1") || refuse install.digest "cannot read $1" "remove its directory as root and run the job again"
	if [ "${got%% *}" != "$2" ]; then
		refuse install.digest "$1 has SHA-256 ${got%% *}, want $2 as in release.env" "remove its directory as root and run the job again"
	fi
}

# record writes the digests of a build from source, atomically.
record() {
	local new
	if [ "$how" = root ] && [ -n "$source_sum" ]; then
		new=$(mktemp "$dir/.new-XXXXXXXX")
		printf '%s %s %s\n' "$archive_sum" "$fumehood_sum" "$runsc_sum" >"$new"
		chmod 644 "$new"
		mv -T -- "$new" "$dir/source-$source_sum"
	fi
}

for sum in "$archive_sum" "$fumehood_sum" "$runsc_sum" ${source_sum:+"$source_sum"}; do
	if [[ ! $sum =~ ^[0-9a-f]{64}$ ]]; then
		refuse install.release "invalid SHA-256 $sum" "use the action at a tag or a commit of main"
	fi
done
case $how:$me in
root:0) make_directory "$dir" ;;
own:*) mkdir -m 700 -- "$dir" ;;
*) refuse install.root "user $me is not root" "run the job as root or with sudo" ;;
esac
target=$dir/$archive_sum
if [ -e "$target" ] || [ -L "$target" ]; then # an earlier step or job put it there
	check_programs "$target"
	record
	printf '%s\n' "$target"
	exit 0
fi

new=$(mktemp -d "$dir/.new-XXXXXXXX")
trap 'rm -rf -- "$new"' EXIT
head -c $((256 << 20)) >"$new/archive"
got=$(sha256sum <"$new/archive")
if [ "${got%% *}" != "$archive_sum" ]; then
	refuse install.digest "the archive changed after it was checked: it has SHA-256 ${got%% *}, want $archive_sum as in release.env" "find the process that writes to the runner's temporary directory or tool cache, then run the job again"
fi
check_members "$new/archive"
mkdir -m 755 "$new/tree"
tar --no-same-owner --no-same-permissions -xzf "$new/archive" -C "$new/tree"
check_programs "$new/tree"
# Two jobs may do this at the same time; the second one uses the first one's directory.
mv -T -- "$new/tree" "$target" 2>/dev/null || [ -d "$target" ]
check_programs "$target"
record
printf '%s\n' "$target"

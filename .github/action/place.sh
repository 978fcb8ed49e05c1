#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# place.sh HOW FOLDER ARCHIVE-SHA256 FUMEHOOD-SHA256 RUNSC-SHA256 < ARCHIVE
#
# Lays an archive's programs out in FOLDER/ARCHIVE-SHA256 and prints that path; prints
# "code TAB message TAB hint" and exits with 3 when it will not. With HOW root it runs
# as root, and what it prints can be changed by root alone: it reads the archive from
# stdin into a place of its own, hashes that copy, unpacks that copy, hashes the
# programs, and only then gives the folder its name. Nobody can change a byte between
# the check and the use. HOW own is for jobs without a sandbox: FOLDER is the caller's
# own, and its safekeeping, too.
#
# It does not check gvisor-bin and fumehood-init: fumehood does before each start, by
# the manifest whose digest is linked into it.
set -euo pipefail
umask 022

how=$1 folder=$2 archive_sum=$3 fumehood_sum=$4 runsc_sum=$5
me=$(id -u)

refuse() {
	printf '%s\t%s\t%s\n' "$1" "$(printf '%s' "$2" | LC_ALL=C tr -c '\40-\176' '?')" "$3"
	exit 3
}

# check_owned PATH refuses what somebody else could change or put something else for.
check_owned() {
	local seen
	seen=$(stat -c '%u %a %F' -- "$1") || refuse install.folder "$1 cannot be made or seen" "name another folder in FUMEHOOD_INSTALL_DIR"
	case $seen in
	"$me "*' symbolic link') refuse install.folder "$1 is a symbolic link" "remove it, or name another folder in FUMEHOOD_INSTALL_DIR" ;;
	"$me "*[2367]' '* | "$me "*[2367]?' '*) refuse install.folder "$1 can be written by others (owner, mode and kind: $seen)" "chmod go-w it, or name another folder in FUMEHOOD_INSTALL_DIR" ;;
	"$me "*) ;;
	*) refuse install.folder "$1 does not belong to user $me (owner, mode and kind: $seen)" "name another folder in FUMEHOOD_INSTALL_DIR" ;;
	esac
}

# make_folder PATH makes it with its parents; every one of them must be root's.
make_folder() {
	local path='' part
	if [[ ! $1 =~ ^(/[A-Za-z0-9_][A-Za-z0-9._-]*)+$ ]]; then
		refuse install.folder "$1 is no path for an installation" "name an absolute folder of plain characters in FUMEHOOD_INSTALL_DIR"
	fi
	check_owned /
	while IFS= read -r part; do
		path=$path/$part
		mkdir -m 755 -- "$path" 2>/dev/null || true
		check_owned "$path"
	done < <(tr / '\n' <<<"${1#/}")
}

# check_members refuses what does not belong into a release: it looks at the kind and
# the name of each member.
check_members() {
	local kind name
	while read -r kind _ _ _ _ name; do
		case ${kind:0:1}:$name in
		-:fumehood | -:fumehood-init | -:fumehood-runsc | -:fumehood-runsc.json | -:LICENSE) ;;
		-:gvisor-bin/gvisor-sentry-prewarmer | d:gvisor-bin/) ;;
		'h:gvisor-bin/gvisor_sentry link to fumehood-runsc') ;;
		*) refuse install.archive "the archive has a member that no release has: $kind $name" "tell us: https://github.com/fumehood/fumehood/security" ;;
		esac
	done < <(LC_ALL=C TZ=UTC tar --quoting-style=escape --numeric-owner -tvzf "$1")
}

# check_programs DIR refuses what is not the release, or not ours alone.
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
	got=$(sha256sum <"$1") || refuse install.digest "$1 cannot be read" "remove its folder as root and run the job again"
	if [ "${got%% *}" != "$2" ]; then
		refuse install.digest "$1 has SHA-256 ${got%% *}, release.env says $2" "remove its folder as root and run the job again"
	fi
}

for sum in "$archive_sum" "$fumehood_sum" "$runsc_sum"; do
	if [[ ! $sum =~ ^[0-9a-f]{64}$ ]]; then
		refuse install.release "$sum is no SHA-256" "use the action at a tag or a commit of main"
	fi
done
case $how:$me in
root:0) make_folder "$folder" ;;
own:*) mkdir -m 700 -- "$folder" ;;
*) refuse install.root "this is user $me and not root" "run the job as root or with sudo" ;;
esac
target=$folder/$archive_sum
if [ -e "$target" ] || [ -L "$target" ]; then # an earlier step or job put it there
	check_programs "$target"
	printf '%s\n' "$target"
	exit 0
fi

new=$(mktemp -d "$folder/.new-XXXXXXXX")
trap 'rm -rf -- "$new"' EXIT
head -c $((256 << 20)) >"$new/archive"
got=$(sha256sum <"$new/archive")
if [ "${got%% *}" != "$archive_sum" ]; then
	refuse install.digest "the archive changed after it was checked: it has SHA-256 ${got%% *}, release.env says $archive_sum" "something else on this runner writes to its temporary folder or tool cache; find out what before you run the job again"
fi
check_members "$new/archive"
mkdir -m 755 "$new/tree"
tar --no-same-owner --no-same-permissions -xzf "$new/archive" -C "$new/tree"
check_programs "$new/tree"
# Two jobs may do this at once; whoever comes second finds the first one's.
mv -T -- "$new/tree" "$target" 2>/dev/null || [ -d "$target" ]
check_programs "$target"
printf '%s\n' "$target"

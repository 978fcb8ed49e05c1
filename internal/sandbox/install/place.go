// SPDX-License-Identifier: Apache-2.0

package install

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// checkFolders checks the directories and the manifest, which have no digest of their
// own.
func checkFolders(dir string) error {
	for _, name := range []string{".", sidecarDir, manifestName} {
		path := filepath.Join(dir, name)
		info, err := os.Lstat(path)
		if err != nil {
			return badDigest(dir, "it is incomplete: "+err.Error())
		}
		if name != manifestName && !info.IsDir() {
			return badPermissions(dir, path, "is not a directory")
		}
		if err := checkOwner(dir, path, info); err != nil {
			return err
		}
	}
	return nil
}

// checkReach returns an error if the unprivileged user that runs the sentry when fumehood
// is root cannot start it from dir. runsc would only report "permission denied".
func checkReach(dir string) error {
	if os.Geteuid() != 0 {
		return nil // the sentry then runs as the current user
	}
	for path := dir; ; path = filepath.Dir(path) {
		info, err := os.Stat(path)
		if err != nil {
			return badDigest(dir, err.Error())
		}
		if mode := info.Mode().Perm(); mode&0o001 == 0 {
			return refusalError(CodePermissions, dir, fmt.Sprintf("the sentry cannot enter %q (mode %04o)", path, mode),
				"move it, or the cache (FUMEHOOD_CACHE), to a directory that every user can enter")
		}
		if path == filepath.Dir(path) {
			return nil
		}
	}
}

// checkSidecars returns an error for files that m does not list, because runsc runs what
// it finds there.
func checkSidecars(dir string, m manifest) error {
	named := map[string]bool{}
	for _, f := range m.Files {
		named[f.Name] = true
	}
	entries, err := os.ReadDir(filepath.Join(dir, sidecarDir))
	if err != nil {
		return badDigest(dir, err.Error())
	}
	for _, entry := range entries {
		if name := sidecarDir + "/" + entry.Name(); !named[name] {
			return badDigest(dir, fmt.Sprintf("%q is not in its manifest", name))
		}
	}
	return nil
}

// checkOwner returns an error if another user could change path.
func checkOwner(dir, path string, info fs.FileInfo) error {
	if info.Mode()&fs.ModeSymlink != 0 {
		return badPermissions(dir, path, "is a symbolic link")
	}
	if mode := info.Mode().Perm(); mode&0o022 != 0 {
		return badPermissions(dir, path, fmt.Sprintf("is writable by others (mode %04o)", mode))
	}
	owner := info.Sys().(*syscall.Stat_t).Uid
	if owner != 0 && int(owner) != os.Geteuid() {
		return badPermissions(dir, path, fmt.Sprintf("belongs to user %d", owner))
	}
	return nil
}

func badPermissions(dir, path, message string) error {
	return refusalError(CodePermissions, dir, fmt.Sprintf("%q %s", path, message),
		"it must be a regular file of root or of the user who runs fumehood, not writable by others: "+
			"remove that directory and run fumehood again, or fix it with chown and chmod go-w")
}

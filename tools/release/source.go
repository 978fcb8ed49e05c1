// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
)

// sources are the files and directories that a build reads.
var sources = []string{"go.mod", "go.sum", "LICENSE", "cmd", "internal", "pkg", "policies", "testdata", "tools"}

// sourceDigest identifies the sources in root. It is the SHA-256 of sha256sum's output for
// all files, in the order of their paths' bytes: install.sh computes the same, to find out
// whether an earlier build is of its own sources.
func sourceDigest(root string) (string, error) {
	var paths []string
	for _, name := range sources {
		err := filepath.WalkDir(filepath.Join(root, name), func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				paths = append(paths, path)
			}
			return err
		})
		if err != nil {
			return "", err
		}
	}
	all := sha256.New()
	var problems []error
	slices.Sort(paths)
	for _, path := range paths {
		sum, err := digest(path)
		name, bad := filepath.Rel(root, path)
		problems = append(problems, err, bad)
		fmt.Fprintf(all, "%s  %s\n", sum, filepath.ToSlash(name))
	}
	return hex.EncodeToString(all.Sum(nil)), errors.Join(problems...)
}

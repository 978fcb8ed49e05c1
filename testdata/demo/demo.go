// SPDX-License-Identifier: Apache-2.0

// Package demo carries the small pull request that fumehood demo runs.
package demo

import (
	"embed"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Plan is what a reviewer proposed on the pull request.
//
//go:embed plan.yaml
var Plan []byte

// A nested go.mod would keep the folder from being embedded, so it has another
// name here.
//
//go:embed all:workspace
var workspace embed.FS

//go:embed policy
var policy embed.FS

// Write writes the pull request's tree below dir, which must exist.
func Write(dir string) error { return write(dir, workspace, "workspace") }

// WritePolicy writes the repository's policy below dir.
func WritePolicy(dir string) error { return write(dir, policy, "policy") }

func write(dir string, files embed.FS, root string) error {
	return fs.WalkDir(files, root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := filepath.Join(dir, strings.TrimSuffix(strings.TrimPrefix(path, root), ".txt"))
		if d.IsDir() {
			return os.MkdirAll(target, 0o755)
		}
		data, err := fs.ReadFile(files, path)
		if err != nil {
			return err
		}
		return os.WriteFile(target, data, 0o644)
	})
}

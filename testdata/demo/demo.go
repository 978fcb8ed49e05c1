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

// Write writes the pull request's tree below dir, which must exist.
func Write(dir string) error {
	return fs.WalkDir(workspace, "workspace", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := filepath.Join(dir, strings.TrimSuffix(strings.TrimPrefix(path, "workspace"), ".txt"))
		if d.IsDir() {
			return os.MkdirAll(target, 0o755)
		}
		data, err := fs.ReadFile(workspace, path)
		if err != nil {
			return err
		}
		return os.WriteFile(target, data, 0o644)
	})
}

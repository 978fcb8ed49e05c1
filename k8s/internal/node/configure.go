// SPDX-License-Identifier: Apache-2.0

package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/process"
	"github.com/fumehood/fumehood/internal/kit/replace"
)

// Configure makes the configuration in the directory from that of the node whose root directory is
// mounted at root. from has File's contents as node.toml, and the bundles and keys that it names, at
// the same paths below it as on the node below File's directory.
//
// Everything is checked before the node's file is replaced: every bundle has its digest and a signature,
// and compiles, and all files that are named are there. If not, the node keeps what it has. Bundles and
// keys are written once: Configure refuses other contents under the same name, and removes none, so that
// an earlier configuration can come back. The error is a *proposal.StopError.
func Configure(ctx context.Context, from, root string) error {
	file := filepath.Join(from, filepath.Base(File))
	c, err := decode(file)
	if err == nil {
		err = c.placeConfig(ctx, from, root)
	}
	if err != nil {
		return invalidConfig(file, err)
	}
	return nil
}

// placeConfig writes to the node what c names, and then the file.
func (c Config) placeConfig(ctx context.Context, from, root string) error {
	dir := filepath.Dir(File)
	for _, name := range c.files() {
		if !within(filepath.Clean(name), dir) {
			return fmt.Errorf("%q is not below %s", name, dir)
		}
	}
	given := c // as it is in from
	relocate := func(name string) string { return filepath.Join(from, strings.TrimPrefix(name, dir)) }
	given.Policies, given.Keys = relocate(c.Policies), nil
	for _, name := range c.Keys {
		given.Keys = append(given.Keys, relocate(name))
	}
	var names []string
	for _, digest := range c.digests() {
		if _, err := given.Engine(ctx, digest); err != nil {
			return err
		}
		names = append(names, c.bundlePath(digest))
	}
	if err := os.MkdirAll(filepath.Join(root, c.Policies), 0o755); err != nil {
		return err
	}
	for _, name := range append(names, c.Keys...) {
		to := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := writeOnce(relocate(name), to); err != nil {
			return err
		}
	}
	for _, name := range c.files() { // also those that this does not write, such as the log's key
		if err := process.CheckPrivate(filepath.Join(root, name), os.Geteuid()); err != nil {
			return err
		}
	}
	text, err := os.ReadFile(c.file)
	if err != nil {
		return err
	}
	return replace.File(filepath.Join(root, File), text, 0o644)
}

// writeOnce copies a file, unless it is there.
func writeOnce(from, to string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	switch was, err := os.ReadFile(to); {
	case errors.Is(err, fs.ErrNotExist):
		return replace.File(to, text, 0o644)
	case err != nil:
		return err
	case !bytes.Equal(was, text):
		return fmt.Errorf("the node has another %s: give the new one another name", to)
	}
	return nil
}

// SPDX-License-Identifier: Apache-2.0

//go:build linux

package gate

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// The files of a base do not stay: neither those of a run that was killed nor those of one that cannot
// write them all.
func TestBaseLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	killed := filepath.Join(dir, baseDir+"killed")
	if err := errors.Join(os.Mkdir(killed, 0o711), os.WriteFile(filepath.Join(killed, "big"), []byte("x"), 0o600)); err != nil {
		t.Fatal(err)
	}
	full := errors.New("no space left on device")
	b := &base{tree: BaseTree{Write: func(_ context.Context, dir string) ([]string, error) {
		return nil, errors.Join(os.MkdirAll(filepath.Join(dir, "part"), 0o755), full)
	}}}
	if err := b.Open(t.Context()); !errors.Is(err, full) {
		t.Errorf("opened: %v", err)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

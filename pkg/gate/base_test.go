// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/fumehood/fumehood/pkg/proposal"
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
		return nil, errors.Join(os.MkdirAll(filepath.Join(dir, "part"), 0o755), &fs.PathError{Op: "write", Path: filepath.Join(dir, "part/a.txt"), Err: full})
	}}}
	if _, err := b.Open(t.Context()); !errors.Is(err, full) || err.Error() != "write part/a.txt: no space left on device" {
		t.Errorf("opened: %v", err)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// The cause that a report has for a base is the same in each run.
func TestBaseErrorsHaveNoTemporaryPath(t *testing.T) {
	err := withoutBaseDir(&proposal.StopError{Code: "checkout.file", Message: `cannot write "/var/tmp/fumehood-base-123/workspace/src/a.go"`,
		Hint: "free /tmp/fumehood-base-9f/x or /tmp/fumehood-base-9f/visible/y", Err: errors.New("mkdir /tmp/fumehood-base-123: no space left")})
	f := proposal.FailureOf(err)
	if f.Code != "checkout.file" || f.Hint != "free x or y" || f.Message != `cannot write "src/a.go": mkdir a temporary directory: no space left` {
		t.Errorf("%+v", f)
	}
	if withoutBaseDir(nil) != nil {
		t.Error("nothing is an error")
	}
}

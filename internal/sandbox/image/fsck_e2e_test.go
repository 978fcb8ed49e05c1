// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package image

import (
	"bytes"
	"context"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestE2EFsck: erofs-utils, a reader that does not share code with gVisor's, finds no fault in
// what is written and can extract it.
func TestE2EFsck(t *testing.T) {
	written, copied := filepath.Join(t.TempDir(), "written"), filepath.Join(t.TempDir(), "copied")
	hard := file{Entry{Path: "zz", Mode: 0o644, Hard: "a/big"}, ""}
	if _, err := build(t, written, Options{}, append(sample(), hard)...); err != nil {
		t.Fatal(err)
	}
	owner := func(uid, gid uint32) (uint32, uint32) { return uid + 1000, gid + 2000 }
	if _, err := FromDir(context.Background(), copied, tree(t), DirOptions{Owner: owner}); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{written, copied} {
		out, err := exec.Command("fsck.erofs", "--extract", path).CombinedOutput()
		if err != nil || bytes.Contains(out, []byte("orrupt")) {
			t.Errorf("fsck.erofs: %v\n%s", err, out)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package pathwalk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// The walk ends where the kernel's ends, and fails where that fails.
func TestResolve(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.MkdirAll("a/b", 0o755))
	must(os.WriteFile("a/b/file", nil, 0o644))
	must(os.Symlink("a/b/file", "40"))
	for i := 39; i >= 0; i-- {
		must(os.Symlink(fmt.Sprint(i+1), fmt.Sprint(i)))
	}
	for link, target := range map[string]string{
		"up": "a/b/../../a/./b", "absolute": dir + "/a", "a/b/back": "../../up//file", "loop": "loop", "dangling": "a/none",
		"a/link": "b", "root": "/", "past": strings.Repeat("../", 40) + dir + "/a/b/file",
	} {
		must(os.Symlink(target, link))
	}
	for _, name := range []string{"a/b/file", "up/file", "absolute/b/back", "a/link/../link/file", "a/link/..", "root/" + dir + "/a", "past", "1", "0",
		"loop", "loop/x", "dangling", "none/x", "a//b/.", "/", "/../.."} {
		if !filepath.IsAbs(name) {
			name = dir + "/" + name
		}
		got, err := Resolve(name, func(step string) (string, error) {
			info, err := os.Lstat(step)
			if err != nil || info.Mode()&os.ModeSymlink == 0 {
				return "", err
			}
			return os.Readlink(step)
		})
		f, kernel := os.OpenFile(name, os.O_RDONLY, 0)
		if errors.Is(kernel, syscall.ELOOP) != errors.Is(err, syscall.ELOOP) || (kernel == nil) != (err == nil) {
			t.Errorf("%s: %v, the kernel %v", name, err, kernel)
			continue
		}
		if kernel != nil {
			continue
		}
		if want, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd())); err != nil || got != want {
			t.Errorf("%s leads to %s, want %s (%v)", name, got, want, err)
		}
		f.Close()
	}
}

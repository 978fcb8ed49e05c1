// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// tree makes a directory that passes, with a file f in d.
func tree(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "d")
	if err := errors.Join(os.Mkdir(dir, 0o755), os.WriteFile(filepath.Join(dir, "f"), nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestPrivate(t *testing.T) {
	me := os.Geteuid()
	for name, test := range map[string]struct {
		change func(dir string) error
		path   string // below dir
		want   string // of the Changeable, below dir; "" for none
	}{
		"private":                      {func(string) error { return nil }, "f", ""},
		"a directory":                  {func(string) error { return nil }, "", ""},
		"a file for all":               {func(d string) error { return os.Chmod(d+"/f", 0o666) }, "f", "f"},
		"a file for a group":           {func(d string) error { return os.Chmod(d+"/f", 0o664) }, "f", "f"},
		"a file with the sticky bit":   {func(d string) error { return os.Chmod(d+"/f", 0o666|os.ModeSticky) }, "f", "f"},
		"the directory above":          {func(d string) error { return os.Chmod(d, 0o777) }, "f", "."},
		"a sticky directory above":     {func(d string) error { return os.Chmod(d, 0o777|os.ModeSticky) }, "f", ""},
		"a sticky directory itself":    {func(d string) error { return os.Chmod(d, 0o777|os.ModeSticky) }, "", "."},
		"two above":                    {func(d string) error { return errors.Join(os.Mkdir(d+"/x", 0o755), os.Chmod(d, 0o777)) }, "x", "."},
		"a link":                       {func(d string) error { return os.Symlink("f", d+"/l") }, "l", ""},
		"an absolute link":             {func(d string) error { return os.Symlink(d+"/f", d+"/l") }, "l", ""},
		"a link to what all may write": {func(d string) error { return errors.Join(os.Symlink("f", d+"/l"), os.Chmod(d+"/f", 0o666)) }, "l", "f"},
		"a link to an open directory": {func(d string) error {
			return errors.Join(os.Mkdir(d+"/x", 0o755), os.WriteFile(d+"/x/f", nil, 0o644), os.Symlink("x", d+"/l"), os.Chmod(d+"/x", 0o777))
		}, "l/f", "x"},
		"a link up": {func(d string) error {
			return errors.Join(os.Mkdir(d+"/x", 0o755), os.Symlink("../x/../f", d+"/x/l"))
		}, "x/l", ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := tree(t)
			if err := test.change(dir); err != nil {
				t.Fatal(err)
			}
			err := CheckPrivate(filepath.Join(dir, test.path), me)
			changeable := &Changeable{}
			switch {
			case test.want == "" && err != nil:
				t.Error(err)
			case test.want != "" && (!errors.As(err, &changeable) || changeable.Path != filepath.Join(dir, test.want)):
				t.Errorf("error %v, want about %q", err, test.want)
			}
		})
	}
}

func TestPrivateRefuses(t *testing.T) {
	dir := tree(t)
	if err := errors.Join(os.Symlink("loop", dir+"/loop"), os.Symlink("nothing", dir+"/gone")); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]error{dir + "/loop": syscall.ELOOP, dir + "/gone": os.ErrNotExist, dir + "/f/x": syscall.ENOTDIR} {
		if err := CheckPrivate(path, os.Geteuid()); !errors.Is(err, want) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if CheckPrivate("d", os.Geteuid()) == nil {
		t.Error("a relative path passed")
	}
}

// Only root can give a file away.
func TestPrivateOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		if changeable := (&Changeable{}); !errors.As(CheckPrivate(tree(t), 0), &changeable) {
			t.Error("a directory of this user is root's")
		}
		return
	}
	dir := tree(t)
	for _, path := range []string{dir + "/f", dir} {
		if err := os.Lchown(path, 12345, -1); err != nil {
			t.Fatal(err)
		}
		if changeable := (&Changeable{}); !errors.As(CheckPrivate(dir+"/f", 0), &changeable) || changeable.Path != path {
			t.Errorf("%v, want about %q", changeable, path)
		}
	}
	if err := CheckPrivate(dir+"/f", 12345); err != nil {
		t.Error(err)
	}
}

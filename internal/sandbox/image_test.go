// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/kit/sample"
	"github.com/fumehood/fumehood/internal/sandbox/image"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// repository makes a workspace with a git repository, links and a program.
func repository(t testing.TB, dir string) {
	t.Helper()
	sh(t, dir, `git init -q . && mkdir -p sub/empty && echo one > a && echo two > sub/b && cp /usr/bin/true sub/prog &&
		ln -s sub/b link && ln a hard && chmod 600 a && touch -d '2001-02-03 04:05:06.789012345 UTC' sub/b &&
		git add -A && git -c user.name=x -c user.email=x@localhost commit -qm first && chmod 1770 sub/empty`)
}

func sh(t testing.TB, dir, text string) string {
	t.Helper()
	cmd := exec.Command("/bin/bash", "-ec", text)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", text, err, out)
	}
	return string(out)
}

// A workspace in an image looks to commands as the workspace does: types, modes, owners,
// links, times, mapped files, programs and git.
func TestWorkspaceImage(t *testing.T) {
	t.Parallel()
	const text = `find . -mindepth 1 -path ./.git -prune -o -printf '%y %m %u %l %T@ %p\n' | sort -k 6; stat -c '%n %h %s' a hard link sub/b; sub/prog && echo ran
		cat link a; /opt/bin/testprogram map sub/b
		git -c safe.directory='*' status --short; git -c safe.directory='*' log --format=%s; git -c safe.directory='*' grep two`
	o := testOptions(t)
	repository(t, o.Workspace)
	var said [2]string
	for i, from := range []int{1 << 30, 1} {
		o.ImageFrom = from
		r := testRunner(t, o)
		result := runText(t, r, text)
		said[i] = string(result.Stdout.Head) + string(result.Stderr.Head)
		if isImage := r.o.workspace.file != nil; isImage != (from == 1) || !result.Succeeded() {
			t.Errorf("an image: %v; %s\n%s", isImage, result.Status, said[i])
		}
	}
	if !strings.Contains(said[1], "ran\ntwo\none\ntwo\nfirst\nsub/b:two\n") {
		t.Errorf("an image shows\n%s", said[1])
	}
	if diff := cmp.Diff(said[0], said[1]); diff != "" {
		t.Errorf("as directory and as image (-directory +image):\n%s", diff)
	}
}

// What commands change in a workspace that is an image is reported file by file.
func TestWorkspaceImageChanges(t *testing.T) {
	t.Parallel()
	const text = "echo more >> a; rm sub/b; mkdir -p new/dir; echo x > new/dir/file; chmod +x hard; rm -r sub/empty; mkdir sub/empty; ln -sf a link; mv sub/prog prog"
	o := testOptions(t)
	repository(t, o.Workspace)
	before := sh(t, o.Workspace, "find . | xargs ls -ld --time-style=full-iso")
	var found [2]proposal.Changes
	for i, from := range []int{1 << 30, 1} {
		o.ImageFrom = from
		found[i] = runText(t, testRunner(t, o), text).Changes
	}
	if diff := cmp.Diff(found[0], found[1]); diff != "" || len(found[1].Files) < 8 {
		t.Errorf("changes (-directory +image):\n%s", diff)
	}
	if after := sh(t, o.Workspace, "find . | xargs ls -ld --time-style=full-iso"); after != before {
		t.Errorf("the host's files changed:\n%s", cmp.Diff(before, after))
	}
}

// The image is of one moment for all sandboxes of a run, and is gone after it.
func TestWorkspaceImageIsASnapshot(t *testing.T) {
	t.Parallel()
	o := testOptions(t)
	o.ImageFrom, o.StateDir = 1, t.TempDir()
	file := filepath.Join(o.Workspace, "file")
	write(t, file, "first")
	r := testRunner(t, o)
	if got := string(runText(t, r, "cat file").Stdout.Head); got != "first" {
		t.Errorf("file is %q", got)
	}
	write(t, file, "second")
	x := Execution{ID: "x", Text: "cat file", Grant: proposal.Grant{Limits: testLimits(), Fresh: true}}
	if result, err := r.Run(t.Context(), x); err != nil || string(result.Stdout.Head) != "first" {
		t.Errorf("in the next sandbox file is %q, %v", result.Stdout.Head, err)
	}
	if left := sh(t, o.StateDir, "find . -name '*.erofs'"); left != "" {
		t.Errorf("images with a name: %s", left)
	}
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// A workspace that cannot be an image is shown as it is.
func TestWorkspaceNotAnImage(t *testing.T) {
	t.Parallel()
	o := testOptions(t)
	o.ImageFrom = 1
	write(t, filepath.Join(o.Workspace, "file"), "x")
	l, err := net.Listen("unix", filepath.Join(o.Workspace, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	r := testRunner(t, o)
	if result := runText(t, r, "cat file"); string(result.Stdout.Head) != "x" || r.o.workspace.file != nil {
		t.Errorf("%s %q, image %v", result.Status, result.Stdout.Head, r.o.workspace.file)
	}
}

// layerImage makes an image with one file.
func layerImage(t testing.TB, text string) Image {
	t.Helper()
	path := filepath.Join(t.TempDir(), "layer")
	w, err := image.Create(path, image.Options{})
	if err != nil {
		t.Fatal(err)
	}
	e := image.Entry{Path: "lib/file", Mode: 0o644, ModTime: time.Unix(1, 0), Size: int64(len(text))}
	if err := w.Add(e, strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	digest, _, err := w.Close()
	if err != nil {
		t.Fatal(err)
	}
	return Image{path, "/deps", digest}
}

// An image beside the workspace is readable, and writable under an overlay.
func TestImages(t *testing.T) {
	t.Parallel()
	o := testOptions(t)
	o.Trees = []Bind{{t.TempDir(), "/tree"}}
	first, second := layerImage(t, "one"), layerImage(t, "two")
	second.Target = "/more"
	o.Images = []Image{first, second}
	r := testRunner(t, o)
	if got := runText(t, r, "cat /deps/lib/file /more/lib/file; ls /tree"); string(got.Stdout.Head) != "onetwo" {
		t.Errorf("%s: %q %q", got.Status, got.Stdout.Head, got.Stderr.Head)
	}
	// The files are root's, as the image says.
	if got := runText(t, r, "echo x > /deps/lib/file"); got.Succeeded() {
		t.Error("a command changed a file of root")
	}
}

// Only the image that was expected is used, whenever it is replaced.
func TestImageRefused(t *testing.T) {
	spoils := map[string]func(i Image) error{
		"another":        func(i Image) error { return os.Rename(layerImage(t, "other").Source, i.Source) },
		"changed":        func(i Image) error { return os.WriteFile(i.Source, []byte("x"), 0o600) },
		"cut":            func(i Image) error { return os.Truncate(i.Source, 4096) },
		"missing":        func(i Image) error { return os.Remove(i.Source) },
		"others write":   func(i Image) error { return os.Chmod(i.Source, 0o622) },
		"another's file": func(i Image) error { return os.Chown(i.Source, 1234, 0) },
		"directory":      func(i Image) error { return errors.Join(os.Remove(i.Source), os.Mkdir(i.Source, fs.ModePerm)) },
		"link": func(i Image) error {
			return errors.Join(os.Rename(i.Source, i.Source+"2"), os.Symlink(i.Source+"2", i.Source))
		},
	}
	for _, name := range sample.EveryNthKey(t, spoils, 3, 8) {
		spoil := spoils[name]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := testOptions(t)
			layer := layerImage(t, "one")
			o.Images = []Image{layer}
			r := testRunner(t, o)
			runText(t, r, "true")
			if err := spoil(layer); err != nil {
				t.Fatal(err)
			}
			if name != "changed" && name != "cut" { // root can end a sandbox so
				if got := runText(t, r, "cat /deps/lib/file"); string(got.Stdout.Head) != "one" {
					t.Errorf("the running sandbox: %q", got.Stdout.Head)
				}
			}
			x := Execution{ID: "x", Text: "cat /deps/lib/file", Grant: proposal.Grant{Limits: testLimits(), Fresh: true}}
			result, err := r.Run(t.Context(), x)
			var stop *proposal.StopError
			if !errors.As(err, &stop) || stop.Code != "sandbox.image" || string(result.Stdout.Head) != "" {
				t.Errorf("%v, printed %q", err, result.Stdout.Head)
			}
		})
	}
}

// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/sandbox/image"
)

// exported runs text, and returns an image of what it left.
func exported(t *testing.T, o Options, text string, b LayerBounds) (string, []LayerFile, error) {
	t.Helper()
	r := testRunner(t, o)
	if got := runText(t, r, text); !got.Succeeded() {
		t.Fatalf("%s: %s", text, got.Stderr.Head)
	}
	path := filepath.Join(t.TempDir(), "image")
	w, err := image.Create(path, image.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var files []LayerFile
	err = r.Export(t.Context(), b, func(f LayerFile, content io.Reader) error {
		files = append(files, f)
		return w.Add(image.Entry{Path: f.Path, Mode: f.Mode, UID: f.UID, GID: f.GID, ModTime: f.ModTime, Link: f.Link, Hard: f.Hard, Size: f.Size}, content)
	})
	if got := runText(t, r, "true"); !got.Succeeded() {
		t.Errorf("after Export: %+v", got)
	}
	if err == nil {
		_, _, err = w.Close()
	} else {
		w.Abort()
	}
	return path, files, err
}

func opened(t *testing.T, path string) *os.File {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

var enough = LayerBounds{MaxFiles: 10_000, MaxBytes: 100 << 20}

// What one sandbox exported is there in another, and its changes are those since.
func TestLayer(t *testing.T) {
	o := testOptions(t)
	o.Home = map[string]string{".config/own": "fumehood's"}
	set := `mkdir -p node_modules/a dir && echo one >node_modules/a/x && ln node_modules/a/x node_modules/a/y && ln -s a node_modules/l && chmod 750 node_modules/a
		printf 'new\n' >"$(printf 'node_modules/n\nl')" && touch node_modules/empty && mkdir -p ~/.cache/t && echo home >~/.cache/t/f && echo changed >>~/.config/own
		echo gone >node_modules/g && rm node_modules/g && mkfifo node_modules/fifo`
	path, files, err := exported(t, o, set, enough)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if f.Path == "home/.config/own" || f.Path == "0/node_modules/fifo" || f.Path == "0/node_modules/g" {
			t.Errorf("exported %q", f.Path)
		}
	}
	o.Layer = opened(t, path)
	r := testRunner(t, o)
	look := `cat node_modules/a/x node_modules/a/y node_modules/l/x "$(printf 'node_modules/n\nl')" ~/.cache/t/f ~/.config/own; stat -c %a node_modules/a; stat -c %h node_modules/a/x`
	got := runText(t, r, look)
	if want := "one\none\none\nnew\nhome\nfumehood's750\n2\n"; !got.Succeeded() || string(got.Stdout.Head) != want {
		t.Errorf("with the layer: %q %s", got.Stdout.Head, got.Stderr.Head)
	}
	if len(got.Changes.Files) > 0 {
		t.Errorf("changes of a command that changed nothing: %+v", got.Changes.Files)
	}
	got = runText(t, r, "echo two >>node_modules/a/x && rm node_modules/empty && echo n >n && echo h >>~/.cache/t/f && cat ~/.cache/t/f")
	var changes []string
	for _, c := range got.Changes.Files {
		changes = append(changes, c.Kind+" "+c.Path)
	}
	if want := []string{"added n", "changed node_modules/a/x", "removed node_modules/empty"}; !slices.Equal(changes, want) || string(got.Stdout.Head) != "home\nh\n" {
		t.Errorf("changes %q, %q", changes, got.Stdout.Head)
	}
	d, err := r.Diff(t.Context(), "d", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range d.Files {
		if f.Path == "node_modules/a/x" && (f.Old == nil || f.Old.Bytes != 4 || f.New.Bytes != 8) {
			t.Errorf("difference %+v", f)
		}
	}
	if len(d.Files) != 3 {
		t.Errorf("differences %+v", d.Files)
	}
}

// What a layer cannot hold is refused, and the sandbox goes on.
func TestLayerRefused(t *testing.T) {
	for _, x := range []struct{ name, text, want string }{
		{"a removed file", "rm file", `removed "0/file"`},
		{"a replaced directory", "rm -r dir && mkdir dir", "removed"},
		{"too many files", "mkdir d && cd d && seq 110 | xargs touch", "too many files"},
		{"too many bytes", "truncate -s 2G big", "too many bytes"},
	} {
		t.Run(x.name, func(t *testing.T) {
			o := testOptions(t)
			err := errors.Join(os.Mkdir(filepath.Join(o.Workspace, "dir"), 0o755), os.WriteFile(filepath.Join(o.Workspace, "file"), nil, 0o600), os.WriteFile(filepath.Join(o.Workspace, "dir/file"), nil, 0o600))
			if err != nil {
				t.Fatal(err)
			}
			_, _, err = exported(t, o, x.text, LayerBounds{MaxFiles: 100, MaxBytes: 100 << 20})
			if !errors.Is(err, ErrNoLayer) || !strings.Contains(err.Error(), x.want) {
				t.Errorf("error %v", err)
			}
		})
	}
}

// Of a sandbox that has ended, or in which nothing has run, there is no layer.
func TestLayerOfNothing(t *testing.T) {
	r := testRunner(t, testOptions(t))
	add := func(f LayerFile, _ io.Reader) error { t.Errorf("exported %+v", f); return nil }
	if err := r.Export(t.Context(), enough, add); !errors.Is(err, ErrNoLayer) {
		t.Errorf("error %v", err)
	}
	if got := runText(t, r, "echo x >f"); !got.Succeeded() {
		t.Fatal(got.Detail)
	}
	if err := r.current.killSandbox(); err != nil {
		t.Fatal(err)
	}
	if err := r.Export(t.Context(), enough, add); !errors.Is(err, ErrNoLayer) {
		t.Errorf("error %v", err)
	}
}

// What a command names itself is data: links out of the layer are kept as text.
func TestLayerHostileNames(t *testing.T) {
	o := testOptions(t)
	text := `mkdir node_modules && cd node_modules && ln -s /etc etc && ln -s ../../../../etc/passwd up && printf x >'a
node f 644 0 0 0 3 "0.etc" ""' && cp /bin/true su && chmod 6755 su`
	path, files, err := exported(t, o, text, enough)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if f.Mode&0o6000 != 0 || f.Path == "0.etc" {
			t.Errorf("exported %+v", f)
		}
	}
	o.Layer = opened(t, path)
	got := runText(t, testRunner(t, o), `cd node_modules && readlink etc up && stat -c %a su && ls | wc -l`)
	if want := "/etc\n../../../../etc/passwd\n755\n5\n"; string(got.Stdout.Head) != want { // a name with a newline has two lines
		t.Errorf("got %q %s", got.Stdout.Head, got.Stderr.Head)
	}
}

// An answer that init does not send ends the sandbox's use.
func TestParseNode(t *testing.T) {
	good := `node f 644 1000 1000 5 3 "0/a b" ""`
	if f, regular, err := parseNode(good); err != nil || !regular || f.Path != "0/a b" || f.Size != 3 {
		t.Errorf("%+v %v %v", f, regular, err)
	}
	for _, line := range []string{
		`node f 644 1000 1000 5 3 "/etc" ""`, `node f 644 1000 1000 5 3 "0/../x" ""`, `node f 644 1000 1000 5 -3 "0/a" ""`, `node d 755 0 0 0 1 "0/a" ""`,
		`node b 644 0 0 0 0 "0/a" ""`, `node f 7777 0 0 0 0 "0/a" ""`, `node f 644 0 0 0 0 "0/a"`, `node f 644 0 0 0 0 0/a ""`, `node`, ``,
	} {
		if f, _, err := parseNode(line); err == nil {
			t.Errorf("%s: %+v", line, f)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/kit/roottest"
	"github.com/fumehood/fumehood/internal/kit/sample"
	"github.com/fumehood/fumehood/internal/sandbox/image"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// asWriter in the environment makes the test binary make a layer: see TestMain.
const asWriter = "FUMEHOOD_TEST_LAYERS_WRITER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(asWriter); dir != "" {
		writer(dir)
	}
	roottest.RunTests(m)
}

// writer makes the layer "shared" in dir again and again, until it is killed, and reads it.
func writer(dir string) {
	for {
		s, err := Open(dir, 0)
		if err == nil {
			_, err = keep(s, keyOf("shared"), "shared content")
		}
		var l *SetupLayer
		if err == nil {
			l, err = get(s, "shared")
		}
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		if l != nil {
			l.Close()
		}
		fmt.Println("made")
	}
}

func keyOf(name string) string { return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(name))) }

// get returns the layer of a name, whatever its inputs are.
func get(s *Store, name string) (*SetupLayer, error) {
	return s.Find(keyOf(name), anyInputs)
}

func anyInputs([]Input) (bool, error) { return true, nil }

// only accepts these inputs and no others.
func only(want []Input) Matcher {
	return func(inputs []Input) (bool, error) { return slices.Equal(inputs, want), nil }
}

var testInputs = []Input{{".", "dir 755"}, {"a \"\n\xff", "absent"}, {"b", `link "x y"`}}

// nameOf returns the name of the file of the layer that keep makes.
func nameOf(name string) string {
	data, err := encodeInputs(testInputs)
	if err != nil {
		panic(err)
	}
	file, err := fileName(keyOf(name), layerKey(keyOf(name), data))
	if err != nil {
		panic(err)
	}
	return file
}

func pathOf(s *Store, name string) string { return filepath.Join(s.dir, nameOf(name)) }

// keep makes a layer with one file.
func keep(s *Store, key, content string) (Info, error) {
	return keepWith(s, key, content, testInputs)
}

func keepWith(s *Store, key, content string, inputs []Input) (Info, error) {
	m, err := s.Make(Info{Setup: key, Run: "run-1"}, inputs)
	if err != nil {
		return Info{}, err
	}
	if err := m.Add(image.Entry{Path: "0/file", Mode: 0o644, Size: int64(len(content))}, strings.NewReader(content)); err != nil {
		return Info{}, errors.Join(err, m.Abort())
	}
	return m.Keep()
}

func testStore(t *testing.T, max int64) *Store {
	t.Helper()
	s, err := Open(filepath.Join(t.TempDir(), "layers"), max)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mustKeep(t *testing.T, s *Store, name, content string) Info {
	t.Helper()
	i, err := keep(s, keyOf(name), content)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// mustGet returns the layer of a name, or nil, and ends its use.
func mustGet(t *testing.T, s *Store, name string) *SetupLayer {
	t.Helper()
	l, err := get(s, name)
	if err != nil {
		t.Fatal(err)
	}
	if l != nil {
		t.Cleanup(func() { l.Close() })
	}
	return l
}

func code(err error) string {
	var stop *proposal.StopError
	if errors.As(err, &stop) {
		return stop.Code
	}
	return fmt.Sprint(err)
}

func TestKeepAndGet(t *testing.T) {
	s := testStore(t, 0)
	if l := mustGet(t, s, "a"); l != nil {
		t.Fatalf("found %+v", l.Info)
	}
	made := mustKeep(t, s, "a", "one")
	l := mustGet(t, s, "a")
	if l == nil || l.Info != made || l.Setup != keyOf("a") || "sha256:"+strings.TrimSuffix(filepath.Base(pathOf(s, "a")), suffix)[65:] != l.Key || l.Run != "run-1" {
		t.Fatalf("kept %+v, got %+v", made, l)
	}
	if data, err := os.ReadFile(l.File.Name()); err != nil || !bytes.Contains(data, []byte("one")) || int64(len(data)) != l.Size+2*block {
		t.Errorf("%d bytes, %v", len(data), err)
	}
	// Same key, same inputs: the first one stays.
	if again := mustKeep(t, s, "a", "two"); again.Digest == made.Digest {
		t.Error("both have the same digest")
	}
	if l := mustGet(t, s, "a"); l.Digest != made.Digest {
		t.Error("a layer in use was replaced")
	}
	if again, err := s.Get(l.Setup, l.Key); err != nil || again.Info != made || again.Close() != nil {
		t.Errorf("by both keys: %+v, %v", again, err)
	}
	if _, err := s.Get(l.Setup, "../../etc/passwd"); code(err) != CodeInvalid {
		t.Errorf("error %v", err)
	}
	if _, err := s.Find("../../etc/passwd", anyInputs); code(err) != CodeInvalid {
		t.Errorf("error %v", err)
	}
}

// THREATS 67: a layer that is not what its name says is never used, and the next run makes
// another.
func TestTamperedLayers(t *testing.T) {
	lanetest.SkipShort(t)
	flip := func(at int64) func(string) error {
		return func(path string) error {
			f, err := os.OpenFile(path, os.O_RDWR, 0)
			if err != nil {
				return err
			}
			defer f.Close()
			b := make([]byte, 1)
			if _, err := f.ReadAt(b, at); err != nil {
				return err
			}
			_, err = f.WriteAt([]byte{b[0] ^ 1}, at)
			return err
		}
	}
	cut := func(by int64) func(string) error {
		return func(path string) error {
			info, err := os.Stat(path)
			if err != nil {
				return err
			}
			return os.Truncate(path, info.Size()-by)
		}
	}
	for name, spoil := range map[string]func(path string) error{
		"content":    flip(4096),
		"superblock": flip(1024),
		"last byte":  cut(1),
		"last block": cut(block),
		"empty":      func(path string) error { return os.Truncate(path, 0) },
		"longer":     func(path string) error { return os.Truncate(path, 1<<20) },
		"other's": func(path string) error {
			return os.Rename(filepath.Join(filepath.Dir(path), nameOf("b")), path)
		},
		"link":           func(path string) error { return errors.Join(os.Rename(path, path+"~"), os.Symlink(path+"~", path)) },
		"directory":      func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) },
		"FIFO":           func(path string) error { return errors.Join(os.Remove(path), unix.Mkfifo(path, 0o600)) },
		"other's owner":  func(path string) error { return os.Chown(path, 12345, 12345) },
		"writable":       func(path string) error { return os.Chmod(path, 0o666) },
		"run with lines": func(path string) error { return rewrite(path, `"run-1"`, `"a\nb"`) },
		"other key":      func(path string) error { return rewrite(path, keyOf("a"), keyOf("b")) },
		"other inputs":   func(path string) error { return change(path, "dir 755", "dir 700") },
		"inputs twice":   func(path string) error { return change(path, "\"b\" link", "\".\" link") },
	} {
		t.Run(name, func(t *testing.T) {
			if name == "other's owner" && os.Geteuid() != 0 {
				t.Fatal("needs root")
			}
			s := testStore(t, 0)
			mustKeep(t, s, "a", "of a")
			mustKeep(t, s, "b", "of b")
			if err := spoil(pathOf(s, "a")); err != nil {
				t.Fatal(err)
			}
			list, err := s.List()
			if err != nil || len(list) == 0 {
				t.Errorf("list %v %v", list, err)
			}
			if l, err := get(s, "a"); l != nil || code(err) != CodeInvalid {
				t.Fatalf("got %+v, %v", l, err)
			}
			mustKeep(t, s, "a", "of a")
			if l := mustGet(t, s, "a"); l == nil {
				t.Error("the layer was not made again")
			}
		})
	}
}

// rewrite replaces text in the last block, as someone who knows the format does.
func rewrite(path, old, by string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	tail := data[len(data)-block:]
	changed := append(bytes.Replace(tail, []byte(old), []byte(by), 1), bytes.Repeat([]byte(" "), block)...)
	copy(tail, changed)
	return os.WriteFile(path, data, 0o600)
}

// change replaces text of the inputs.
func change(path, old, by string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return os.WriteFile(path, bytes.Replace(data, []byte(old), []byte(by), 1), 0o600)
}

// A set-up key has a layer for each list of inputs, and the matching one is found. One that is
// damaged does not hide it.
func TestFindByInputs(t *testing.T) {
	s, inputs := testStore(t, 0), [][]Input{}
	for i := range 3 {
		inputs = append(inputs, []Input{{"a", fmt.Sprint("file 644 ", i)}})
		if _, err := keepWith(s, keyOf("x"), fmt.Sprint("layer ", i), inputs[i]); err != nil {
			t.Fatal(err)
		}
	}
	digests := map[string]bool{}
	for _, list := range inputs {
		l, err := s.Find(keyOf("x"), only(list))
		if err != nil || l == nil {
			t.Fatal(l, err)
		}
		digests[l.Digest] = true
		l.Close()
	}
	if l, err := s.Find(keyOf("x"), only(inputs[0][:0])); len(digests) != 3 || l != nil || err != nil {
		t.Errorf("%d layers, %v, %v", len(digests), l, err)
	}
	if l, err := s.Find(keyOf("y"), anyInputs); l != nil || err != nil {
		t.Errorf("another set-up has %v, %v", l, err)
	}
	last := s.mustList(t)[0]
	if err := os.Truncate(last.path, block); err != nil {
		t.Fatal(err)
	}
	later := time.Now().Add(time.Minute) // than all others, so that it is looked at first
	if err := os.Chtimes(last.path, later, later); err != nil {
		t.Fatal(err)
	}
	l, err := s.Find(keyOf("x"), anyInputs)
	if l == nil || l.Key == last.Key || code(err) != CodeInvalid {
		t.Errorf("beside a damaged one: %+v, %v", l, err)
	}
	l.Close()
	if l, err := s.Find(keyOf("x"), func([]Input) (bool, error) { return true, os.ErrPermission }); l != nil || !errors.Is(err, os.ErrPermission) {
		t.Errorf("inputs that cannot be compared: %v, %v", l, err)
	}
	if left := s.mustList(t); len(left) != 2 {
		t.Errorf("left %+v", left)
	}
}

func (s *Store) mustList(t *testing.T) []Entry {
	t.Helper()
	list, err := s.List()
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// A set-up key has at most MaxLayers layers: those that were not used for longest go.
func TestLayersOfOneKey(t *testing.T) {
	s := testStore(t, 0)
	for i := range MaxLayers + 3 {
		info, err := keepWith(s, keyOf("x"), "", []Input{{"a", fmt.Sprint(i)}})
		if err != nil {
			t.Fatal(err)
		}
		name, _ := fileName(info.Setup, info.Key)
		at := time.Now().Add(time.Duration(i-100) * time.Hour)
		if err := os.Chtimes(filepath.Join(s.dir, name), at, at); err != nil {
			t.Fatal(err)
		}
	}
	for i := range MaxLayers + 3 {
		l, err := s.Find(keyOf("x"), only([]Input{{"a", fmt.Sprint(i)}}))
		if err != nil || (l != nil) != (i >= 3) {
			t.Errorf("%d: %v, %v", i, l, err)
		}
		l.Close()
	}
	if list := s.mustList(t); len(list) != MaxLayers {
		t.Errorf("%d layers", len(list))
	}
}

// Inputs that a layer cannot hold make none, and a layer of an earlier version is none.
func TestInputsRefused(t *testing.T) {
	s := testStore(t, 0)
	for name, inputs := range map[string][]Input{
		"none": nil, "not sorted": {{"b", "x"}, {"a", "x"}}, "twice": {{"a", "x"}, {"a", "y"}}, "lines": {{"a", "x\n\"b\" y"}},
		"too many": make([]Input, MaxInputs+1), "too long": {{"a", strings.Repeat("x", maxInputBytes)}},
	} {
		if name == "too many" {
			for i := range inputs {
				inputs[i].Path = fmt.Sprintf("%09d", i)
			}
		}
		if m, err := s.Make(Info{Setup: keyOf("x"), Run: "r"}, inputs); m != nil || code(err) != CodeWrite {
			t.Errorf("%s: %v", name, err)
		}
	}
	old := filepath.Join(s.dir, keyOf("x")[7:]+suffix)
	if err := os.WriteFile(old, make([]byte, 3*block), 0o600); err != nil {
		t.Fatal(err)
	}
	if l, err := s.Find(keyOf("x"), anyInputs); l != nil || err != nil {
		t.Errorf("%v, %v", l, err)
	}
	if removed, err := s.Prune(1<<40, time.Time{}); err != nil || len(removed) != 1 || removed[0].Problem == "" {
		t.Errorf("removed %+v, %v", removed, err)
	}
}

func TestOpenRefusesOthersDirectories(t *testing.T) {
	dir := t.TempDir()
	for name, prepare := range map[string]func(path string) error{
		"shared": func(path string) error { return errors.Join(os.Mkdir(path, 0o700), os.Chmod(path, 0o777)) },
		"file":   func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"link":   func(path string) error { return os.Symlink(t.TempDir(), path) },
		"owner":  func(path string) error { return errors.Join(os.Mkdir(path, 0o700), os.Chown(path, 12345, 12345)) },
	} {
		path := filepath.Join(dir, name)
		if err := prepare(path); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(path, 0); code(err) != CodeStore {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The layers that were not used for longest go first, and one in use stays.
func TestLimit(t *testing.T) {
	s := testStore(t, 0)
	for i, name := range []string{"a", "b", "c", "d"} {
		mustKeep(t, s, name, name)
		path := pathOf(s, name)
		at := time.Now().Add(time.Duration(i-10) * time.Hour)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	list, err := s.List()
	if err != nil || len(list) != 4 {
		t.Fatal(list, err)
	}
	if removed, _, err := s.pruneLayers(1<<40, 4, time.Time{}); err != nil || len(removed) != 0 {
		t.Errorf("removed %v, %v", removed, err)
	}
	if removed, _, err := s.pruneLayers(1<<40, 3, time.Time{}); err != nil || len(removed) != 1 || exists(pathOf(s, "a")) {
		t.Errorf("removed %v, %v", removed, err)
	}
	mustKeep(t, s, "a", "a")
	if oldest := time.Now().Add(-10 * time.Hour); os.Chtimes(pathOf(s, "a"), oldest, oldest) != nil {
		t.Fatal("cannot set the time of a layer")
	}
	s.max = 4 * list[0].fileSize()
	held, err := get(s, "b")
	if err != nil || held == nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-100 * time.Hour)
	path := pathOf(s, "b")
	if err := os.Chtimes(path, old, old); err != nil { // the first to go, but in use
		t.Fatal(err)
	}
	mustKeep(t, s, "e", "e")
	for name, want := range map[string]bool{"a": false, "b": true, "e": true} {
		if path := pathOf(s, name); want != exists(path) {
			t.Errorf("%s is there: %v", name, !want)
		}
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	if removed, err := s.Prune(1<<40, time.Now().Add(-time.Hour)); err != nil || len(removed) == 0 {
		t.Errorf("removed %v, %v", removed, err)
	}
	if removed, err := s.Prune(0, time.Time{}); err != nil || len(removed) == 0 {
		t.Errorf("removed %v, %v", removed, err)
	}
	if list, err := s.List(); err != nil || len(list) != 0 {
		t.Errorf("left %v, %v", list, err)
	}
}

func exists(path string) bool { _, err := os.Stat(path); return err == nil }

// THREATS 68: what cannot be written whole is not there.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=256k"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	s, err := Open(filepath.Join(dir, "layers"), 0)
	if err != nil {
		t.Fatal(err)
	}
	big := make([]byte, 1<<20)
	for i := range big {
		big[i] = byte(rand.Uint32())
	}
	if _, err := keep(s, keyOf("a"), string(big)); err == nil {
		t.Error("kept more than fits")
	}
	if left, err := os.ReadDir(s.dir); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
	mustKeep(t, s, "a", "small")
	if mustGet(t, s, "a") == nil {
		t.Error("nothing was kept after a full disk")
	}
}

// A layer beyond the store's limit is an error, and removes no other.
func TestTooLarge(t *testing.T) {
	s := testStore(t, 64<<10)
	mustKeep(t, s, "a", "a")
	if _, err := keep(s, keyOf("b"), strings.Repeat("x", 128<<10)); err == nil {
		t.Error("kept a layer that is larger than the store")
	}
	if mustGet(t, s, "a") == nil {
		t.Error("the other layer is gone")
	}
}

// THREATS 68: processes that make and read the same layer at once, and are killed at any
// moment, leave a whole layer or none, and nothing else after the next Open.
func TestProcessesAtOnce(t *testing.T) {
	lanetest.SkipShort(t)
	random := sample.Random(t)
	dir := filepath.Join(t.TempDir(), "layers")
	for range 10 {
		var writers []*exec.Cmd
		for range 3 {
			cmd := exec.Command(os.Args[0])
			cmd.Env = []string{asWriter + "=" + dir}
			var out bytes.Buffer
			cmd.Stdout = &out
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if text := strings.ReplaceAll(out.String(), "made\n", ""); text != "" {
					t.Errorf("a writer: %s", text)
				}
			})
			writers = append(writers, cmd)
		}
		time.Sleep(time.Duration(30+random.IntN(60)) * time.Millisecond)
		for _, cmd := range writers {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
		s, err := Open(dir, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := get(s, "shared"); err != nil {
			t.Fatal(err)
		}
		files, err := os.ReadDir(dir)
		if err != nil || len(files) > 1 {
			t.Errorf("left %v, %v", files, err)
		}
		if _, err := s.Prune(0, time.Time{}); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
}

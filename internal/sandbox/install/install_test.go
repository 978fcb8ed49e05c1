// SPDX-License-Identifier: Apache-2.0

package install_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/sandbox/install"
	"github.com/fumehood/fumehood/internal/sandbox/install/installtest"
	"github.com/fumehood/fumehood/pkg/proposal"
)

func TestFindReturnsAWholeInstallation(t *testing.T) {
	r := installtest.Runsc(t)
	if r.Version != install.GVisorVersion {
		t.Errorf("Version = %q, want %q", r.Version, install.GVisorVersion)
	}
	if !strings.HasPrefix(r.Digest, "sha256:") || len(r.Digest) != len("sha256:")+64 {
		t.Errorf("Digest = %q, want a SHA-256", r.Digest)
	}
	if r.Prewarmed == (r.PrewarmerNote != "") {
		t.Errorf("Prewarmed = %t with the note %q", r.Prewarmed, r.PrewarmerNote)
	}
	for _, path := range []string{r.Path, r.Init} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o555 {
			t.Errorf("%q: mode %v, error %v; want an executable that nobody writes", path, info, err)
		}
	}
	again, err := install.Find(t.Context(), install.Options{Path: r.Path})
	if err != nil {
		t.Fatalf("its own path is refused: %v", err)
	}
	if again.Digest != r.Digest {
		t.Errorf("by path the digest is %s, by cache %s", again.Digest, r.Digest)
	}
}

// "go test ./..." runs two at once; the third finds what they built. What they
// build here is a copy; build_e2e_test.go makes a real build.
func TestConcurrentFindsBuildOnce(t *testing.T) {
	lanetest.SkipShort(t)
	whole := filepath.Dir(installtest.Runsc(t).Path)
	install.BuildBy(t, func(dir string) error { return errors.Join(copyInto(t, whole, dir), os.Chmod(dir, 0o755)) })
	buildsOnce(t)
}

func buildsOnce(t *testing.T) {
	t.Helper()
	cache := filepath.Join(openTempDir(t), "cache")
	var builds atomic.Int32
	find := func() {
		_, err := install.Find(t.Context(), install.Options{CacheDir: cache, Build: true, Progress: func(line string) {
			if strings.HasPrefix(line, "building") {
				builds.Add(1)
			}
		}})
		if err != nil {
			t.Error(err)
		}
	}
	var both sync.WaitGroup
	both.Go(find)
	both.Go(find)
	both.Wait()
	find()
	if got := builds.Load(); got != 1 {
		t.Errorf("it was built %d times, want once", got)
	}
}

func TestNothingIsFound(t *testing.T) {
	for name, o := range map[string]install.Options{
		"an empty cache and no leave to build": {CacheDir: t.TempDir()},
		"a path that does not exist":           {Path: filepath.Join(t.TempDir(), "fumehood-runsc"), Build: true},
		"another runsc":                        {Path: "/usr/bin/runsc", Build: true},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := install.Find(t.Context(), o)
			wantStop(t, err, install.CodeMissing, "")
		})
	}
}

func TestBuildWithoutGo(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	cache := openTempDir(t)
	_, err := install.Find(t.Context(), install.Options{CacheDir: cache, Build: true})
	wantStop(t, err, install.CodeBuild, "cannot find the go command")
	left, err := filepath.Glob(filepath.Join(cache, "runsc", "*", "*"))
	if err != nil || len(left) != 0 {
		t.Errorf("a build that did not succeed left %q (%v)", left, err)
	}
}

func TestCacheThatOthersMayWrite(t *testing.T) {
	cache := t.TempDir()
	builds := filepath.Join(cache, "runsc")
	if err := os.Mkdir(builds, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(builds, 0o777); err != nil {
		t.Fatal(err)
	}
	_, err := install.Find(t.Context(), install.Options{CacheDir: cache, Build: true})
	wantStop(t, err, install.CodePermissions, "writable by others")
}

// wantStop checks that err is a StopError with code whose text contains part and
// which has a hint.
func wantStop(t *testing.T, err error, code, part string) {
	t.Helper()
	var stop *proposal.StopError
	if !errors.As(err, &stop) {
		t.Fatalf("err = %v, want a stop with the code %s", err, code)
	}
	if stop.Code != code || !strings.Contains(stop.Error(), part) {
		t.Errorf("stopped with %q, want the code %s and %q", stop.Error(), code, part)
	}
	if stop.Hint == "" {
		t.Errorf("%q has no hint", stop.Error())
	}
}

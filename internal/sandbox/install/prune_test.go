// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/kit/lease"
	"github.com/fumehood/fumehood/internal/kit/lease/leasetest"
)

// oldBuilds makes n builds, oldest first, all older than a day.
func oldBuilds(t *testing.T, builds string, n int) []string {
	t.Helper()
	var made []string
	for i := range n {
		dir := filepath.Join(builds, fmt.Sprint("build-", i))
		then := time.Now().Add(time.Duration(i-100) * time.Hour)
		err := errors.Join(os.Mkdir(dir, 0o755), os.WriteFile(filepath.Join(dir, runscName), nil, 0o555), os.Chtimes(dir, then, then))
		if err != nil {
			t.Fatal(err)
		}
		made = append(made, dir)
	}
	return made
}

// A build that a process has found and still uses outlives every newer one.
func TestPruneSparesWhatIsUsed(t *testing.T) {
	builds := t.TempDir()
	made := oldBuilds(t, builds, keptBuilds+3)
	held, err := holdDir(t.Context(), made[1], holdTries)
	if err != nil || held == nil {
		t.Fatal(held, err)
	}
	pruneBuilds(builds)
	for i, dir := range made {
		_, err := os.Stat(filepath.Join(dir, runscName))
		if want := i == 1 || i >= 3; (err == nil) != want {
			t.Errorf("build %d: %v, want it there: %t", i, err, want)
		}
	}
	held.Close()
	pruneBuilds(builds)
	if _, err := os.Stat(made[1]); !os.IsNotExist(err) {
		t.Errorf("what nobody uses any more is left: %v", err)
	}
	if _, err := holdDir(t.Context(), made[1], holdTries); !errors.Is(err, errPruned) {
		t.Errorf("held what is gone: %v", err)
	}
}

// Find locks what it returns.
func TestFindHolds(t *testing.T) {
	r, err := Find(t.Context(), Options{Build: true, Progress: func(line string) { t.Log(line) }})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lease.Take(filepath.Dir(r.Path)); !errors.Is(err, lease.ErrHeld) {
		t.Errorf("what is in use can be taken: %v", err)
	}
	if err := r.CheckUnchanged(); err != nil {
		t.Error(err)
	}
}

// A user with only read access to the cache cannot block fumehood with a lock, and waiting
// for the lock can be canceled.
func TestHoldAgainstAStrangersLock(t *testing.T) {
	lanetest.SkipShort(t)
	t.Parallel()
	dir := oldBuilds(t, t.TempDir(), 1)[0]
	file, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := holdDir(ctx, dir, holdTries); !errors.Is(err, context.Canceled) {
		t.Errorf("after cancel: %v", err)
	}
	if held, err := holdDir(t.Context(), dir, 3); held != nil || err != nil {
		t.Errorf("hold = %v, %v; want neither", held, err)
	}
}

// Concurrent prunes remove no build that a process holds.
func TestPruneTogether(t *testing.T) {
	builds := t.TempDir()
	leasetest.RunTogether(t, builds, func(turn leasetest.Turn) error {
		dir := filepath.Join(turn.Dir, fmt.Sprintf("%d-%d", turn.Round, turn.Process/4)) // four share one
		then := time.Now().Add(-48 * time.Hour)
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
		held, err := holdDir(context.Background(), dir, holdTries)
		if errors.Is(err, errPruned) {
			return nil // Find then builds again
		}
		if err != nil || held == nil {
			return fmt.Errorf("hold = %v, %v", held, err)
		}
		defer held.Close()
		if err := os.Chtimes(dir, then, then); err != nil {
			return err
		}
		pruneBuilds(turn.Dir)
		_, err = os.Stat(dir)
		return err
	})
}

// A lock on a removed file excludes no other process, so it is not the cache's lock.
func TestLockOfARemovedCache(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, err := lockFile(t.Context(), path, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	waiting, locked := make(chan struct{}), make(chan func())
	go func() {
		unlock, err := lockFile(t.Context(), path, func(string) { close(waiting) })
		if err != nil {
			t.Error(err)
		}
		locked <- unlock
	}()
	<-waiting
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	first()
	second := <-locked
	defer second()
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := lockFile(ctx, path, func(string) { cancel() }); !errors.Is(err, context.Canceled) {
		t.Errorf("a third process locked it, too: %v", err)
	}
}

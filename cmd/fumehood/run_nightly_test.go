// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package main

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"
)

// Many runs in a row, each with a process that would outlive its command, leave no
// cgroup, directory or process behind.
func TestNightlyManyRuns(t *testing.T) {
	d := newDesk(t)
	d.plan(t, "echo x > new; sleep 100 & echo done", "1m")
	before := traces()
	begin := time.Now()
	const runs = 20
	for i := range runs {
		name := fmt.Sprint("run", i)
		if code, r := d.run(t, name); code != exitOK || result(t, r).Leftover != 1 {
			t.Fatalf("run %d: exit code %d, result %+v", i, code, result(t, r))
		}
	}
	t.Logf("%d runs, %s each", runs, (time.Since(begin) / runs).Round(time.Millisecond))
	if files, _ := filepath.Glob(d.path("ws/*")); len(files) > 0 {
		t.Errorf("in the workspace: %v", files)
	}
	d.checkNothingLeft(t, before)
}

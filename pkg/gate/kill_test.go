// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/fumehood/fumehood/pkg/gate"
)

// sessionIn makes this test's process the caller of a session whose files are in a directory.
const sessionIn = "FUMEHOOD_TEST_SESSION"

func killedSession(dir string) int {
	ctx := context.Background()
	g, err := gate.New(ctx, gate.Options{Workspace: filepath.Join(dir, "ws"), Artifacts: filepath.Join(dir, "out"), AuditFile: filepath.Join(dir, "audit.jsonl")})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	s, err := g.Open(ctx, gate.SessionOptions{})
	for i, step := range []func(id string) error{
		func(string) error { _, err := s.Put(ctx, "x", []byte("x")); return err },
		func(id string) error { _, err := s.Do(ctx, run(id, "echo ran-"+id)); return err },
		func(id string) error { _, err := s.Do(ctx, run(id, "echo ran-"+id+"; sleep 0.05")); return err },
		func(string) error { _, _, err := s.Take(ctx, "x"); return err },
		func(id string) error { _, err := s.Do(ctx, run(id, "echo ran-"+id)); return err },
		func(string) error { _, err := s.Close(); return err },
	} {
		if err == nil {
			err = step(fmt.Sprintf("p%d", i))
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

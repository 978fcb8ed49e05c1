// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"os"
	"path/filepath"

	"github.com/fumehood/fumehood/pkg/plan"
	"github.com/fumehood/fumehood/testdata/demo"
)

func demoDoor() *door {
	return &door{
		name:     "demo",
		synopsis: "the whole way on a small pull request: prints the comment it would post",
		usage: `[flags]

The first run from source builds fumehood-runsc, once.

examples:
  fumehood demo
  fumehood demo --json | jq .totals
`,
		run: runDemo,
	}
}

// runDemo exits with 0 when the demo went its way, in which commands are denied
// and one test fails.
func runDemo(c *call) int {
	var s setup
	f := c.flags()
	s.defineCommon(f)
	if code, ok := c.parse(f); !ok {
		return code
	}
	dir, err := os.MkdirTemp("", "fumehood-demo-")
	if err != nil {
		return c.stopped(err)
	}
	defer os.RemoveAll(dir)
	s.workspace = filepath.Join(dir, "billing")
	if err := demo.Write(s.workspace); err != nil {
		return c.stopped(err)
	}
	p, problems := plan.Decode(demo.Plan, "plan.yaml")
	if len(problems) > 0 {
		panic("demo: internal error: " + plan.Describe("plan.yaml", problems[0]))
	}
	if code := c.gate(&s, p); code == exitStopped {
		return code
	}
	return exitOK
}

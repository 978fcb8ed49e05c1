// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/fumehood/fumehood/pkg/plan"
	"github.com/fumehood/fumehood/pkg/proposal"
	"github.com/fumehood/fumehood/pkg/report/progress"
	"github.com/fumehood/fumehood/testdata/demo"
)

func demoDoor() *door {
	return &door{
		name:     "demo",
		synopsis: "run the full pipeline on a sample pull request and print the comment",
		usage: `[flags]

The first run from source builds fumehood-runsc, once.

examples:
  fumehood demo
  fumehood demo --json | jq .totals
`,
		run: runDemo,
	}
}

// runDemo exits with 0 when the pipeline ran to its end: some commands are denied and
// one test fails.
func runDemo(c *call) int {
	var s runFlags
	f := c.flags()
	s.defineCommon(f)
	if code, ok := c.parse(f); !ok {
		return code
	}
	p, problems := plan.Decode(demo.Plan, "plan.yaml")
	if len(problems) > 0 {
		panic("demo: internal error: " + plan.Describe("plan.yaml", problems[0]))
	}
	say := progress.New(c.stderr).Notice
	say(fmt.Sprintf("a reviewer proposes %d commands on a small pull request; running them usually takes 5 to 15 s", len(p.Proposals)))
	p.Proposals = withTools(p.Proposals, say)
	dir, err := os.MkdirTemp("", "fumehood-demo-")
	if err != nil {
		return c.stopped(err)
	}
	defer os.RemoveAll(dir)
	if err := s.layDemo(dir); err != nil {
		return c.stopped(err)
	}
	if code := c.gate(&s, p); code == exitStopped {
		return code
	}
	return exitOK
}

// layDemo writes the pull request and its repository's policy below dir.
func (s *runFlags) layDemo(dir string) error {
	s.workspace, s.steps, s.buildCache = filepath.Join(dir, "billing"), true, buildCache()
	policy := filepath.Join(dir, "policy")
	s.policies.Restricting = append(s.policies.Restricting, policy)
	if err := demo.WritePolicy(policy); err != nil {
		return err
	}
	return demo.Write(s.workspace)
}

// demoTools are the programs that the demo's commands need from the host.
var demoTools = []string{"go", "gofmt", "node", "python3"}

// withTools leaves out the proposals whose program this host lacks: they would show a
// missing program, not fumehood.
func withTools(proposals []proposal.Proposal, say func(string)) []proposal.Proposal {
	for _, tool := range demoTools {
		if _, err := exec.LookPath(tool); err == nil {
			continue
		}
		say(tool + " is not installed: the demo leaves out the commands that need it")
		proposals = slices.DeleteFunc(proposals, func(q proposal.Proposal) bool { return demoTool(q) == tool })
	}
	return proposals
}

// demoTool is the first word of a proposal of the demo.
func demoTool(q proposal.Proposal) string {
	switch q.Form() {
	case "argv":
		return q.Argv[0]
	case "code":
		return "python3"
	}
	first, _, _ := strings.Cut(q.Run, " ")
	return first
}

// buildCache returns the host's Go build cache, which holds what "go run" compiled, or "".
// With it the demo's Go test takes a second; without it Go compiles its standard library
// inside the sandbox. A file system that may not show root's files to the unprivileged
// user inside would stop the run, so only those that do are used.
func buildCache() string {
	dir := os.Getenv("GOCACHE")
	if user, err := os.UserCacheDir(); dir == "" && err == nil {
		dir = filepath.Join(user, "go-build")
	}
	dir, err := filepath.EvalSymlinks(dir)
	var in unix.Statfs_t
	if err != nil || !filepath.IsAbs(dir) || unix.Statfs(dir, &in) != nil {
		return ""
	}
	if !slices.Contains([]int64{unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC}, in.Type) {
		return ""
	}
	return dir
}

// buildCacheInside is where the go command looks for it. What it writes is thrown away.
const buildCacheInside = "/home/fumehood/.cache/go-build"

// SPDX-License-Identifier: Apache-2.0

// Package demo carries the small pull request that fumehood demo runs.
package demo

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Plan is what a reviewer proposed on the pull request.
//
//go:embed plan.yaml
var Plan []byte

// A nested go.mod would keep the folder from being embedded, so it has another
// name here.
//
//go:embed all:workspace
var workspace embed.FS

//go:embed policy
var policy embed.FS

// Answers are a model's in a recorded review of the pull request, in order.
func Answers() []string { return []string{string(answer1), string(answer2)} }

//go:embed review/1.json
var answer1 []byte

//go:embed review/2.json
var answer2 []byte

// before is what the pull request of the recorded review changes in billing.go.
const (
	before = "\tif net < 0 {\n\t\treturn -VAT(-net, rate)\n\t}\n"
	at     = "func VAT(net, rate int64) int64 {\n"
)

// WriteRepository makes a repository in dir with two commits, on the branches base and head.
func WriteRepository(ctx context.Context, dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	if err := Write(dir); err != nil {
		return err
	}
	file := filepath.Join(dir, "billing.go")
	head, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	base := strings.Replace(string(head), at, at+before, 1)
	err = git(ctx, dir, "init", "--quiet", "--initial-branch=base")
	for _, side := range []struct{ branch, text string }{{"base", base}, {"head", string(head)}} {
		if err == nil {
			err = os.WriteFile(file, []byte(side.text), 0o644)
		}
		for _, args := range [][]string{{"checkout", "--quiet", "-B", side.branch}, {"add", "--all"}, {"commit", "--quiet", "--no-verify", "--message=" + side.branch}} {
			if err == nil {
				err = git(ctx, dir, args...)
			}
		}
	}
	return err
}

// git runs git in dir, without settings of the user or the host.
func git(ctx context.Context, dir string, args ...string) error {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", dir, "-c", "user.name=demo", "-c", "user.email=demo@billing.example", "-c", "commit.gpgsign=false"}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("git %s: %w: %.200s", args[0], err, out)
	}
	return nil
}

// Write writes the pull request's tree below dir, which must exist.
func Write(dir string) error { return write(dir, workspace, "workspace") }

// WritePolicy writes the repository's policy below dir.
func WritePolicy(dir string) error { return write(dir, policy, "policy") }

func write(dir string, files embed.FS, root string) error {
	return fs.WalkDir(files, root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := filepath.Join(dir, strings.TrimSuffix(strings.TrimPrefix(path, root), ".txt"))
		if d.IsDir() {
			return os.MkdirAll(target, 0o755)
		}
		data, err := fs.ReadFile(files, path)
		if err != nil {
			return err
		}
		return os.WriteFile(target, data, 0o644)
	})
}

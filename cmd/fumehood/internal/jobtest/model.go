// SPDX-License-Identifier: Apache-2.0

package jobtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/review"
	"github.com/fumehood/fumehood/internal/review/model/modeltest"
	"github.com/fumehood/fumehood/pkg/audit"
)

// ModelAnswer is an answer that fits the schema: with done, the last of a review.
func ModelAnswer(t testing.TB, done bool, commands []string, findings ...map[string]any) string {
	t.Helper()
	list := []map[string]string{}
	for _, c := range commands {
		list = append(list, map[string]string{"run": c, "why": "to see"})
	}
	data, err := json.Marshal(map[string]any{"done": done, "commands": list,
		"findings": slices.Concat([]map[string]any{}, findings), "tests": []any{}})
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// CheckReviewLog verifies the log of a review: what is fixed comes first, and each request is
// there before its answer.
func CheckReviewLog(t testing.TB, run review.Run, requests int, sealed bool) (kinds []string) {
	t.Helper()
	log, err := os.Open(run.Log)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	summary, err := audit.Scan(log, audit.Trust{Key: run.Key, Checkpoint: run.Checkpoint}, func(e audit.Entry) error {
		kinds = append(kinds, e.Kind)
		if strings.Contains(string(e.Body), modeltest.Key) {
			t.Error("the key is in the log")
		}
		if e.Kind != "review" {
			return nil
		}
		var fixed struct {
			Policy, Provider, System string
			Limits                   map[string]any
			Network                  []string
		}
		if err := json.Unmarshal(e.Body, &fixed); err != nil || fixed.Policy == "" || fixed.Provider == "" ||
			fixed.System == "" || fixed.Limits == nil || len(fixed.Network) != 0 {
			t.Errorf("%v: %s", err, e.Body)
		}
		return nil
	})
	if err != nil || summary.Complete() != sealed || len(kinds) == 0 || kinds[0] != "review" {
		t.Errorf("%v, %+v, %v", err, summary, kinds)
	}
	n := 0
	for i, kind := range kinds {
		if kind == "model.request" {
			n++
			if sealed && kinds[i+1] != "model.answer" {
				t.Errorf("entry %d: a request without an answer: %v", i, kinds)
			}
		}
	}
	if n != requests {
		t.Errorf("%d requests in the log, %d were sent", n, requests)
	}
	return kinds
}

// FindKeyLeaks returns what is wrong with the processes of a world's step: the one that starts
// sandboxes and all that it started must be there and must not have the key.
func FindKeyLeaks(dir string) (problems []string) {
	key, starters, sandboxes := []byte(modeltest.Key), FindRelays(dir), 0
	if len(starters) != 1 || inMemory(starters[0], key) {
		problems = append(problems, fmt.Sprintf("processes that start sandboxes: %v, or one has the key in its memory",
			starters))
	}
	for _, pid := range starters { // what asks has the key, which shows that looking sees
		if up := parentOf(pid); !inMemory(up, key) {
			problems = append(problems, fmt.Sprintf("process %d does not have the key", up))
		}
	}
	for _, pid := range append(starters, listDescendants(starters)...) {
		proc := fmt.Sprintf("/proc/%d/", pid)
		line, _ := os.ReadFile(proc + "cmdline")
		environ, err := os.ReadFile(proc + "environ")
		if bytes.Contains(line, []byte("runsc")) && err == nil {
			sandboxes++
		}
		if bytes.Contains(append(environ, line...), key) {
			problems = append(problems, fmt.Sprintf("the key is with %q",
				bytes.ReplaceAll(line, []byte{0}, []byte(" "))))
		}
	}
	if sandboxes < 2 {
		problems = append(problems, fmt.Sprintf("%d processes of sandboxes", sandboxes))
	}
	return problems
}

// FindRelays returns the processes that start the sandboxes of a world's step, which is a process of
// its own with dir in its environment.
func FindRelays(dir string) (list []int) {
	for pid, line := range FindProcesses("--job") {
		environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", parentOf(pid)))
		if err == nil && bytes.Contains(environ, []byte(dir)) && strings.HasSuffix(line, " review --job ") {
			list = append(list, pid)
		}
	}
	return list
}

// parentOf returns the parent of a process, or 0.
func parentOf(pid int) (up int) {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, line, _ := bytes.Cut(status, []byte("\nPPid:\t"))
	_, _ = fmt.Sscan(string(line), &up)
	return up
}

// listDescendants returns the processes below those of roots.
func listDescendants(roots []int) (list []int) {
	var below []int
	for _, pid := range listProcesses() {
		if slices.Contains(roots, parentOf(pid)) {
			below = append(below, pid)
		}
	}
	if len(below) == 0 {
		return nil
	}
	return append(below, listDescendants(below)...)
}

// inMemory reports whether memory that a process can write has a value, or that it cannot be read.
func inMemory(pid int, value []byte) bool {
	proc := fmt.Sprintf("/proc/%d", pid)
	maps, err := os.ReadFile(proc + "/maps")
	if err != nil {
		return true
	}
	mem, err := os.Open(proc + "/mem")
	if err != nil {
		return true
	}
	defer mem.Close()
	read := 0
	for line := range strings.Lines(string(maps)) {
		var from, to int64
		var mode string
		if n, _ := fmt.Sscanf(line, "%x-%x %s", &from, &to, &mode); n != 3 || !strings.HasPrefix(mode, "rw") ||
			to-from > 1<<30 {
			continue
		}
		data := make([]byte, to-from)
		n, _ := mem.ReadAt(data, from)
		if read += n; bytes.Contains(data[:n], value) {
			return true
		}
	}
	return read == 0
}

// GreetingFinding is true of the pull request of a world, and extra is added to it.
func GreetingFinding(extra map[string]any) map[string]any {
	f := map[string]any{"id": "greeting", "file": "greet.sh", "line": 1, "start_line": nil, "side": "head",
		"severity": "high", "claim": "greets with more than hello",
		"reproducer": map[string]any{"run": "sh greet.sh | grep -qx hello"}, "suggestion": "echo hello\n"}
	for k, v := range extra {
		f[k] = v
	}
	return f
}

// CheckFilesLack fails if a file below dir has one of the values, or if there is no file. It
// returns the number of files.
func CheckFilesLack(t testing.TB, dir string, values ...string) (files int) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		files++
		data, err := os.ReadFile(path)
		for _, v := range values {
			if bytes.Contains(data, []byte(v)) {
				t.Errorf("%s has %q", path, v)
			}
		}
		return err
	})
	if err != nil || files == 0 {
		t.Errorf("%d files: %v", files, err)
	}
	return files
}

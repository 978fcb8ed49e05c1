// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package job_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
	"github.com/fumehood/fumehood/internal/evidence/report"
	"github.com/fumehood/fumehood/pkg/proposal"
)

const layeredConfig = "schema: fumehood.config/v1\nregistries: none\nsetup: [go mod download]\n"

// layeredFiles are a default branch whose set-up is like a detected one, and needs no registry.
var layeredFiles = map[string]string{".github/fumehood.yml": layeredConfig, "go.mod": "module x\n\ngo 1.21\n"}

const layeredPlan = "INPUT_PLAN=schema: fumehood.plan/v1\nproposals:\n  - {id: look, run: cat README.md}\n"

// pushEvent is the event of a push to the branch of this name.
func (w world) pushEvent(branch string) []byte {
	w.T.Helper()
	data, err := json.Marshal(map[string]any{"ref": "refs/heads/" + branch, "repository": map[string]any{"id": jobtest.HubID, "full_name": jobtest.Hub, "default_branch": "master"},
		"sender": map[string]any{"id": 583231, "login": "octocat", "type": "User"}})
	if err != nil {
		w.T.Fatal(err)
	}
	return data
}

// actLayers runs a job whose directory of the input layers-cache was restored with the files
// of restored, and returns what it has after the job.
func (w world) actLayers(event string, payload []byte, restored map[string][]byte, env ...string) (jobtest.Step, map[string][]byte) {
	w.T.Helper()
	return w.actRestored(event, payload, restored, append([]string{layeredPlan, "INPUT_LAYERS_CACHE=" + restoredDir}, env...)...)
}

// restoredDir is the directory that an earlier step of a job restored, below its temporary one.
const restoredDir = "cache/restored"

// actRestored runs a job whose restoredDir has the files of restored, and returns what it has
// after the job.
func (w world) actRestored(event string, payload []byte, restored map[string][]byte, env ...string) (jobtest.Step, map[string][]byte) {
	w.T.Helper()
	cmd, s := w.Start(event, payload, env...)
	dir := filepath.Join(s.Temp, restoredDir)
	for name, data := range restored {
		if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755), os.WriteFile(filepath.Join(dir, name), data, 0o644)); err != nil {
			w.T.Fatal(err)
		}
	}
	log, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		w.T.Fatal(err)
	}
	after := map[string][]byte{}
	files, _ := os.ReadDir(dir)
	for _, f := range files {
		if after[f.Name()], err = os.ReadFile(filepath.Join(dir, f.Name())); err != nil {
			w.T.Fatal(err)
		}
	}
	w.checkNoneLeft()
	return w.FinishStep(s, cmd.ProcessState.ExitCode(), string(log)), after
}

// checkNoneLeft makes sure that no directory with the layers of one run has outlived it. Those
// of runs at the same time are locked.
func (w world) checkNoneLeft() {
	w.T.Helper()
	dirs, _ := filepath.Glob(filepath.Join(w.Cache, "layers-of-run-*"))
	for _, dir := range dirs {
		f, err := os.Open(dir)
		if err != nil {
			continue // gone
		}
		unlocked := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil
		if _, err := os.Lstat(dir); err == nil && unlocked {
			w.T.Errorf("the job has left %s", dir)
		}
		f.Close()
	}
}

// fromLayer reports whether the set-up of a step's run came from a layer.
func fromLayer(t *testing.T, s jobtest.Step) bool {
	t.Helper()
	r, err := report.Read(jobtest.ReadFile(t, s.Outputs["report"]), 1<<26)
	if err != nil {
		t.Fatalf("%v\n%s", err, s.Log)
	}
	for _, record := range r.Records {
		if record.Proposal.Origin == proposal.OriginSetup && record.Result != nil {
			return record.Result.FromLayer()
		}
	}
	t.Fatalf("the run has no set-up\n%s", s.Log)
	return false
}

func onlyName(files map[string][]byte) string {
	for name := range files {
		return name
	}
	return ""
}

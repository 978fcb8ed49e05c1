// SPDX-License-Identifier: Apache-2.0

package job

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/split"
	"github.com/fumehood/fumehood/internal/github"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// The file in RUNNER_TEMP that a job which reports leaves. The path is always the same, because
// actions/cache restores only what was saved under the same path.
const (
	durationsDir  = "fumehood-durations"
	durationsName = "durations.json"
)

// maxWallMS is more than any valid duration, so that no multiplication overflows.
const maxWallMS = int64(2 * split.MaxDuration / time.Millisecond)

// split sets the output matrix. The plan and the durations are data: nothing of them runs here.
func (j *Job) split() error {
	document, name, err := j.readInput("plan", "plan.unreadable", j.in.Plan)
	if err != nil {
		return err
	}
	matrix, err := split.MakeMatrix(document, name, j.in.Parts, j.restoredDurations().Took)
	if err != nil {
		return err
	}
	if text := string(matrix); j.redactor.Text(text) != text {
		return &proposal.StopError{Code: "split.secret",
			Message: "cannot split the plan: it contains a value to redact, and an output would publish it",
			Hint:    "remove the value from the plan, and replace the secret if others could read it"}
	}
	j.console.PrintProgress("the plan is split into %d parts", strings.Count(string(matrix), `{"name":"part-`))
	return j.outputs.Set("matrix", string(matrix))
}

// restoredDurations reads the input durations. No file is usual in the first run; one that is
// not valid is ignored with a warning.
func (j *Job) restoredDurations() split.Durations {
	if j.in.Durations == "" {
		return nil
	}
	d, err := readDurations(j.runner.Temp, j.in.Durations)
	if errors.Is(err, fs.ErrNotExist) {
		j.console.PrintProgress("no durations of earlier runs: all commands count the same")
	} else if err != nil {
		j.console.PrintWarning("durations.invalid: the durations of earlier runs are ignored: " + j.plain(err.Error()))
	}
	return d
}

func readDurations(dir, name string) (split.Durations, error) {
	if _, err := os.Lstat(filepath.Join(dir, name)); err != nil {
		return nil, err
	}
	f, err := openPlan(dir, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return split.ReadDurations(f)
}

// keepDurations writes how long the commands of runs took that ended by themselves. Reports are
// not trusted: what is not valid is left out.
func (j *Job) keepDurations(runs []PlanRun) error {
	d := split.Durations{}
	for _, l := range runs {
		for _, r := range l.Report.Records {
			if r.Result != nil && r.Result.Status == proposal.Exited && r.Result.Limit == "" &&
				r.Result.Cached == nil && r.Proposal.Origin == "" {
				d.AddDuration(r.Proposal.ID, time.Duration(max(1, min(r.Result.WallMS, maxWallMS)))*time.Millisecond)
			}
		}
	}
	dir := filepath.Join(j.runner.Temp, durationsDir)
	data, err := d.JSON()
	if len(d) == 0 || err != nil {
		return err
	}
	err = errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o700),
		os.WriteFile(filepath.Join(dir, durationsName), data, 0o600))
	if err != nil {
		j.console.PrintWarning("the durations of commands were not kept: " + j.plain(err.Error()))
		return nil
	}
	j.durations = filepath.Join(dir, durationsName)
	return nil
}

func (j *Job) durationsOutputs() [][2]string {
	if j.durations == "" {
		return nil
	}
	return [][2]string{{"durations", j.durations}}
}

// missingParts returns a run for each split plan of which an artifact is missing: its job was
// cancelled, or never started. The names of artifacts say how many parts there are.
func (g Gather) missingParts(artifacts []github.Artifact) (runs []PlanRun) {
	found := map[int]map[int]bool{}
	for _, a := range artifacts {
		job, name := g.Job.readArtifactName(a.Name)
		k, n, ok := split.ParsePart(cmp.Or(name, job))
		if ok && found[n] == nil {
			found[n] = map[int]bool{}
		}
		if ok {
			found[n][k] = true
		}
	}
	for n := 2; n <= split.MaxParts; n++ {
		if parts := found[n]; parts != nil && len(parts) < n {
			runs = append(runs, g.substitute(PlanRun{Name: fmt.Sprintf("missing-of-%d", n)}, missing(parts, n)))
		}
	}
	return runs
}

func missing(found map[int]bool, n int) error {
	var names []string
	for k := 1; k <= n && len(names) < maxPlans; k++ {
		if !found[k] {
			names = append(names, split.PartName(k, n))
		}
	}
	return &proposal.StopError{Code: "report.part-missing",
		Message: fmt.Sprintf("%d of %d parts of the plan have no report: %s", n-len(found), n,
			strings.Join(names, ", ")),
		Hint: "their commands did not run, or left no result: a job was cancelled or did not start. Check the jobs' logs, and run the failed jobs again"}
}

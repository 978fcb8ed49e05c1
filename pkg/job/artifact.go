// SPDX-License-Identifier: Apache-2.0

//go:build linux

package job

import (
	"os"
	"path/filepath"
	"slices"
)

// artifactName is what the upload step calls what this job leaves.
func (j *Job) artifactName() string {
	if j.in.Artifact == "" || j.in.Name == "" {
		return j.in.Artifact
	}
	return j.in.Artifact + "-" + j.in.Name
}

// filesOf names the artifact with the files that commands left. It is another one than
// the reported artifact, which can be read however much they left.
func filesOf(name string) string { return "files-of-" + name }

// artifacts names what the runs have left, each once.
func (j *Job) artifacts(runs []PlanRun) []string {
	var names []string
	for _, l := range runs {
		name := l.artifact.name
		if l.dir != "" {
			name = j.artifactName()
		}
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if j.in.Artifact != "" && leftFiles(runs) {
		names = append(names, filesOf(j.artifactName()))
	}
	return names
}

// leftFiles reports whether commands of this job left any file.
func leftFiles(runs []PlanRun) bool {
	for _, l := range runs {
		if entries, err := os.ReadDir(l.files); err == nil && len(entries) > 0 {
			return true
		}
	}
	return false
}

// artifactOutputs are the outputs of a job that ran plans.
func (j *Job) artifactOutputs(runs []PlanRun) [][2]string {
	if len(runs) == 0 || runs[0].dir == "" {
		return nil
	}
	values := [][2]string{{"report", filepath.Join(runs[0].dir, reportName)}, {"audit-log", filepath.Join(runs[0].dir, auditName)}}
	if j.in.Artifact == "" {
		return values
	}
	values = append(values, [2]string{"artifact-path", j.artifactDir()}, [2]string{"artifact-name", j.artifactName()})
	if leftFiles(runs) {
		values = append(values, [2]string{"files-path", filepath.Join(j.dir, "files")}, [2]string{"files-name", filesOf(j.artifactName())})
	}
	return values
}

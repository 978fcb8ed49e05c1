// SPDX-License-Identifier: Apache-2.0

package job

import (
	"crypto/sha256"
	"fmt"
	"strings"

	"github.com/fumehood/fumehood/internal/github"
)

// maxArtifactName is the length of the longest name with a job's whole id: the state of the comment
// has room for little more, with the number of an attempt.
const maxArtifactName = 58

// ownArtifact is the name of this job's artifact without the attempt: ARTIFACT-JOB.NAME. No id of a
// job has a dot, so that two jobs of a run have different names, and so have the jobs of a matrix
// with different inputs name. It is "" for no artifact.
func (j *Job) ownArtifact() string {
	if j.in.Artifact == "" {
		return ""
	}
	named := func(job string) string {
		if j.in.Name == "" {
			return j.in.Artifact + "-" + job
		}
		return j.in.Artifact + "-" + job + "." + j.in.Name
	}
	if name := named(j.runner.Job); len(name) <= maxArtifactName {
		return name
	}
	return named(fmt.Sprintf("%.4x", sha256.Sum256([]byte(j.runner.Job))))
}

// artifactName is the name of this job's artifact.
func (j *Job) artifactName() string { return attempted(j.ownArtifact(), j.runner.Attempt) }

// readArtifactName splits the name of an artifact that artifactName may have returned in a job with
// the same input artifact. Older versions had no job in it.
func (j *Job) readArtifactName(full string) (job, name string) {
	base, _, _ := attemptOf(full)
	rest := strings.TrimPrefix(strings.TrimPrefix(base, j.in.Artifact), "-")
	job, name, _ = strings.Cut(rest, ".")
	return job, name
}

// labelArtifacts returns what the results in each artifact are called, by the artifact's name: by the
// input name, or else by the job, or by both where that is not unique. The only one needs no job.
func (j *Job) labelArtifacts(artifacts []github.Artifact) map[string]string {
	labels, count := map[string]string{}, map[string]int{}
	for _, a := range artifacts {
		job, name := j.readArtifactName(a.Name)
		if name == "" && len(artifacts) > 1 {
			name = job
		}
		labels[a.Name] = name
		count[name]++
	}
	for _, a := range artifacts {
		if job, name := j.readArtifactName(a.Name); name != "" && count[labels[a.Name]] > 1 {
			labels[a.Name] = job + "." + name
		}
	}
	return labels
}

// SPDX-License-Identifier: Apache-2.0

package job

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/fumehood/fumehood/internal/evidence/report"
	"github.com/fumehood/fumehood/internal/github/action"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// The files that a job which reports leaves about the logs of runs.
const (
	cosignedName  = "audit.cosigned" // in its artifact, of each log
	checksumsName = "audit.sha256"   // for a later step of the job
)

// checkAuditKey refuses the input audit-key in every job but those that report: only they
// neither run code nor choose what runs.
func (j *Job) checkAuditKey(phase action.Phase) error {
	if j.in.AuditKey == nil || phase == action.Report {
		return nil
	}
	return &proposal.StopError{Code: "input.audit-key",
		Message: "input audit-key is given to a job that does not only report",
		Hint:    "give it only to a job with phase: report, and replace the key if code of a pull request has run beside it"}
}

// keepEvidence writes the digests of the logs that were accepted, and cosigns them with the
// input audit-key. A log that is not sealed can be continued, so it is left out.
func (j *Job) keepEvidence(runs []PlanRun) error {
	var checksums strings.Builder
	for i := range runs {
		l := &runs[i]
		switch {
		case l.substitute || l.audit == "":
			continue
		case l.seal == "":
			j.console.PrintWarning("an audit log is not sealed: it is neither cosigned nor in the output audit-checksums")
			continue
		}
		dir := ""
		if len(runs) > 1 {
			dir = strconv.Itoa(i)
		}
		fmt.Fprintf(&checksums, "%s  %s\n", l.digest, filepath.Join(dir, auditName))
		if err := j.cosign(l, dir); err != nil {
			return &proposal.StopError{Code: "audit.cosign", Message: "cannot cosign an audit log", Err: err,
				Hint: "free space in RUNNER_TEMP and run the job again"}
		}
	}
	if checksums.Len() == 0 {
		return nil
	}
	return os.WriteFile(filepath.Join(j.dir, checksumsName), []byte(checksums.String()), 0o600)
}

// cosign writes the seal of a run's log, cosigned, to a directory of the artifact.
func (j *Job) cosign(l *PlanRun, dir string) error {
	if j.in.AuditKey == nil {
		return nil
	}
	at := time.Now().UTC().Truncate(time.Second)
	cosigned, err := j.in.AuditKey.Cosign(l.seal, at)
	if err != nil {
		return err
	}
	l.cosigned = &report.Cosigned{Key: j.in.AuditKey.Key(), Time: at, File: filepath.Join(dir, cosignedName),
		Artifact: j.evidenceName()}
	path := filepath.Join(j.artifactDir(), l.cosigned.File)
	return errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(cosigned), 0o600))
}

// evidenceName names the artifact with cosigned checkpoints. It is not one of those with the
// reports of plans.
func (j *Job) evidenceName() string {
	return attempted("evidence-of-"+j.ownArtifact(), j.runner.Attempt)
}

// evidenceOutputs are the outputs of a job that reports.
func (j *Job) evidenceOutputs(runs []PlanRun) (values [][2]string) {
	if file := filepath.Join(j.dir, checksumsName); isThere(file) {
		values = append(values, [2]string{"audit-checksums", file})
	}
	n := 0
	for _, l := range runs {
		if l.cosigned != nil {
			n++
		}
	}
	if n > 0 {
		values = append(append(values, [2]string{"cosigned", strconv.Itoa(n)}), j.uploadOutputs(j.evidenceName())...)
	}
	return values
}

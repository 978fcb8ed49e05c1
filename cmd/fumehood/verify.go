// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/proposal"
)

func verifyDoor() *door {
	return &door{
		name:     "verify",
		synopsis: "say whether an audit log is whole and unchanged, or what is wrong first",
		usage: `LOG [flags]
       fumehood verify --proof FILE --key KEY [flags]

With --proof, verify checks a proof that fumehood prove printed, without the log.

exit codes: 0 whole and sealed, or a valid proof, 1 changed, cut off or not sealed,
or an invalid proof, 3 cannot be read

examples:
  fumehood verify audit.jsonl
  fumehood verify audit.jsonl --key "$(jq -r .audit.key report.json)"
  fumehood verify --proof unit.tlog-proof --key "$(jq -r .audit.key report.json)"
`,
		run: verifyLog,
	}
}

func verifyLog(c *call) int {
	var trust audit.Trust
	var proof string
	var asJSON bool
	f := c.flags()
	f.StringVar(&trust.Key, "key", "", "verifier key that the log must be signed with, from the report")
	f.StringVar(&trust.Checkpoint, "checkpoint", "", "checkpoint that the log must hold, from the report")
	f.StringVar(&proof, "proof", "", "check the proof in this `file` instead of a log")
	f.BoolVar(&asJSON, "json", false, "print the finding as JSON")
	args, code, ok := c.parseMixed(f)
	if !ok {
		return code
	}
	// A shell's $(…) takes the newline that ends a signed note.
	if trust.Checkpoint != "" && !strings.HasSuffix(trust.Checkpoint, "\n") {
		trust.Checkpoint += "\n"
	}
	switch {
	case proof != "" && (len(args) > 0 || trust.Key == ""):
		return c.misuse("verify --proof needs --key and no log")
	case proof != "":
		return c.verifyProof(proof, trust, asJSON)
	case len(args) != 1:
		return c.misuse("verify needs a log")
	}
	log, err := os.Open(args[0])
	if err != nil {
		return c.stopped(unreadable(args[0], err))
	}
	defer log.Close()
	summary, err := audit.Verify(log, trust)
	return c.printVerdict(summary, err, asJSON)
}

func (c *call) printVerdict(summary audit.Summary, err error, asJSON bool) int {
	if asJSON {
		finding := struct {
			audit.Summary
			Error string `json:"error,omitempty"`
		}{Summary: summary}
		if err != nil {
			finding.Error = err.Error()
		}
		if err := json.NewEncoder(c.stdout).Encode(finding); err != nil {
			return c.stopped(err)
		}
	} else if err != nil {
		fmt.Fprintln(c.stdout, printable(err.Error()))
	} else {
		fmt.Fprintln(c.stdout, printable(summary.String()))
	}
	var wrong *audit.VerifyError
	switch {
	case errors.As(err, &wrong) && wrong.Code == audit.CodeRead:
		return exitStopped
	case err == nil && summary.Complete():
		return exitOK
	}
	return exitRefused
}

func unreadable(path string, err error) error {
	return &proposal.StopError{Code: "audit.not-readable", Message: fmt.Sprintf("cannot read log %q", path),
		Hint: "name the audit.jsonl of a run; the report says where it is", Err: err}
}

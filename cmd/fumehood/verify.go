// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli"
	"github.com/fumehood/fumehood/cmd/fumehood/internal/evidence"
	"github.com/fumehood/fumehood/internal/evidence/report"
	"github.com/fumehood/fumehood/internal/kit/process"
	"github.com/fumehood/fumehood/internal/kit/terminal"
	"github.com/fumehood/fumehood/pkg/audit"
)

// verifyFlags are the flags of verify.
type verifyFlags struct {
	trust  audit.Trust
	any    bool // accept the key in the log's header
	proof  string
	signed string // file with a cosigned checkpoint
	format cli.Format
}

func (c *invocation) verifyCommand() *cobra.Command {
	var s verifyFlags
	cmd := &cobra.Command{
		Use: `verify LOG [flags]
LOG --cosigned FILE --key KEY [flags]
--proof FILE --key KEY [flags]`,
		GroupID: cli.GroupEvidence,
		Short:   "Check that an audit log is complete and unaltered",
		Long: `Check that an audit log is complete and unaltered, or report its first fault. With --proof,
check a proof that fumehood export --proof printed; the log is not needed.

A log verifies with the key in its own header, so who can replace it can also sign another
one. Name the key or the checkpoint that you know from elsewhere: from the report, or from the
comment on the pull request. With --cosigned, name the key that the job which reported the run
has as its input audit-key.

Use --untrusted-key for a log that was in your hands all the time, or that gh attestation verify
or cosign has verified; docs/EVIDENCE.md has the commands.

Exit codes: 0 complete and sealed, or a valid proof; 1 altered, cut off or not sealed, signed by
a key that is not vouched for, or an invalid proof; 3 cannot be read`,
		Example: `  fumehood verify audit.jsonl --report report.json
  fumehood verify audit.jsonl --cosigned audit.cosigned --key "$(cat audit.pub)"
  fumehood verify --proof unit.tlog-proof --report report.json`,
		ValidArgsFunction: cli.CompleteFirstFile,
		RunE:              c.Run(func(args []string) int { return c.runVerify(&s, args) }),
	}
	cmd.Flags().StringVar(&s.proof, "proof", "", "`FILE` check the proof in this file instead of a log")
	cmd.Flags().StringVar(&s.signed, "cosigned", "",
		"`FILE` checkpoint that --key has cosigned and the log must end with")
	cmd.Flags().BoolVar(&s.any, "untrusted-key", false,
		"accept the key in the log, for a log that was in your hands all the time or is attested")
	s.format.Define(cmd, cli.Text, cli.JSON, cli.Markdown)
	defineTrust(cmd, &s.trust, true)
	return cmd
}

// defineTrust defines the flags that say what a log must agree with.
func defineTrust(cmd *cobra.Command, trust *audit.Trust, checkpoint bool) {
	cli.DefineGroup(cmd, "Trust flags", func(f *pflag.FlagSet) {
		f.Var((*givenText)(&trust.Key), "key", "`KEY` verifier key that the log must be signed with, from the report")
		if checkpoint {
			f.Var((*givenText)(&trust.Checkpoint), "checkpoint",
				"`CHECKPOINT` checkpoint that the log must contain, from the report")
			f.Var((*reportFlag)(trust), "report", "`FILE` take the key and the checkpoint from this report")
		}
	})
	cli.NoFiles(cmd, "key")
	if checkpoint {
		cli.NoFiles(cmd, "checkpoint")
		cmd.MarkFlagsMutuallyExclusive("report", "key")
		cmd.MarkFlagsMutuallyExclusive("report", "checkpoint")
	}
}

// A givenText is a flag that is not empty, if it is given: a shell's $(cat FILE) is empty if there is no FILE, and
// a log that must agree with nothing would then be accepted.
type givenText string

func (t *givenText) String() string { return string(*t) }
func (t *givenText) Type() string   { return "string" }

func (t *givenText) Set(text string) error {
	if strings.TrimSpace(text) == "" {
		return errors.New("it is empty")
	}
	*t = givenText(text)
	return nil
}

// A reportFlag is a file that has the key and the checkpoint to trust: a report.
type reportFlag audit.Trust

func (t *reportFlag) String() string { return "" }
func (t *reportFlag) Type() string   { return "string" }

func (t *reportFlag) Set(name string) error {
	r, err := report.Open(name)
	switch {
	case err != nil:
		return err
	case r.Audit == nil || r.Audit.Key == "":
		return errors.New("the report names no audit log")
	}
	t.Key, t.Checkpoint = r.Audit.Key, r.Audit.Checkpoint
	return nil
}

func (c *invocation) runVerify(s *verifyFlags, args []string) int {
	switch {
	case s.signed != "" && (s.trust.Key == "" || s.trust.Checkpoint != "" || s.proof != "" || s.any):
		return c.ReportMisuse("verify --cosigned needs a log and --key, and nothing else to trust")
	case s.proof != "" && (len(args) > 0 || s.trust.Key == ""):
		return c.ReportMisuse("verify --proof needs --key and no log")
	case s.proof != "":
		return c.verifyProof(s)
	case len(args) != 1:
		return c.ReportMisuse("verify needs a log")
	}
	return c.verifyLog(s, args[0])
}

func (c *invocation) verifyLog(s *verifyFlags, name string) int {
	if err := s.trust.Check(); err != nil {
		return c.MisuseOf(err)
	}
	check := evidence.Check{Trust: s.trust, Cosigned: s.signed, AnyKey: s.any}
	process.SaveMemory()
	found, err := check.VerifyLog(name)
	if err != nil {
		return c.Stop(err)
	}
	err = c.PrintAnswer(s.format, func() error { return json.NewEncoder(c.Stdout).Encode(found.Finding) },
		func(w io.Writer) error {
			_, err := fmt.Fprintln(w, terminal.EscapeLine(found.String()))
			return err
		})
	if found.IsReplaceable() {
		c.PrintWarnings("the log may have been replaced and signed again; name --key or --checkpoint from the report, or accept its key with --untrusted-key")
	}
	return c.ExitCode(codeOf(found.Finding, found.Whole), err)
}

// codeOf is the exit code for what was found in a log, which is whole or not.
func codeOf(found audit.Finding, whole bool) int {
	switch {
	case found.Unread():
		return exitStopped
	case whole:
		return exitOK
	}
	return exitRefused
}

// verifyProof checks a proof against the trusted key.
func (c *invocation) verifyProof(s *verifyFlags) int {
	found, err := evidence.VerifyProof(s.proof, s.trust)
	if err != nil {
		return c.Stop(err)
	}
	code := exitOK
	if found.Fault != nil {
		code = exitRefused
	}
	return c.ExitCode(code, c.PrintAnswer(s.format, func() error { return json.NewEncoder(c.Stdout).Encode(found) },
		func(w io.Writer) error {
			for _, line := range strings.SplitN(found.String(), "\n", 2) {
				if _, err := fmt.Fprintln(w, terminal.EscapeLine(line)); err != nil {
					return err
				}
			}
			return nil
		}))
}

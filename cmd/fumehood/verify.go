// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/cli"
	"github.com/fumehood/fumehood/pkg/process"
	"github.com/fumehood/fumehood/pkg/terminal"
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
		GroupID: groupEvidence,
		Short:   "Check that an audit log is complete and unaltered",
		Long: `Check that an audit log is complete and unaltered, or report its first fault. With --proof,
check a proof that fumehood prove printed; the log is not needed.

A log verifies with the key in its own header, so who can replace it can also sign another
one. Name the key or the checkpoint that you know from elsewhere: from the report, or from the
comment on the pull request. With --cosigned, name the key that the job which reported the run
has as its input audit-key.

Exit codes: 0 complete and sealed, or a valid proof; 1 altered, cut off or not sealed, signed by
a key that is not vouched for, or an invalid proof; 3 cannot be read`,
		Example: `  fumehood verify audit.jsonl --key "$(jq -r .audit.key report.json)"
  fumehood verify audit.jsonl --checkpoint "$(jq -r .audit.checkpoint report.json)"
  fumehood verify audit.jsonl --cosigned audit.cosigned --key "$(cat audit.pub)"
  fumehood verify --proof unit.tlog-proof --key "$(jq -r .audit.key report.json)"`,
		ValidArgsFunction: cli.Once,
		RunE:              c.Run(func(args []string) int { return c.verify(&s, args) }),
	}
	cmd.Flags().StringVar(&s.proof, "proof", "", "`FILE` check the proof in this file instead of a log")
	cmd.Flags().StringVar(&s.signed, "cosigned", "", "`FILE` checkpoint that --key has cosigned and the log must end with")
	cmd.Flags().BoolVar(&s.any, "untrusted-key", false, "accept the key in the log, for a log that was in your hands all the time")
	s.format.Define(cmd, cli.Text, cli.JSON, cli.Markdown)
	defineTrust(cmd, &s.trust, true)
	return cmd
}

// defineTrust defines the flags that say what a log must agree with.
func defineTrust(cmd *cobra.Command, trust *audit.Trust, checkpoint bool) {
	cli.Group(cmd, "Trust flags", func(f *pflag.FlagSet) {
		f.StringVar(&trust.Key, "key", "", "`KEY` verifier key that the log must be signed with, from the report")
		if checkpoint {
			f.StringVar(&trust.Checkpoint, "checkpoint", "", "`CHECKPOINT` checkpoint that the log must contain, from the report")
		}
	})
	if cli.NoFiles(cmd, "key"); checkpoint {
		cli.NoFiles(cmd, "checkpoint")
	}
}

func (c *invocation) verify(s *verifyFlags, args []string) int {
	switch {
	case s.signed != "" && (s.trust.Key == "" || s.trust.Checkpoint != "" || s.proof != "" || s.any):
		return c.Misuse("verify --cosigned needs a log and --key, and nothing else to trust")
	case s.proof != "" && (len(args) > 0 || s.trust.Key == ""):
		return c.Misuse("verify --proof needs --key and no log")
	case s.proof != "":
		return c.verifyProof(s)
	case len(args) != 1:
		return c.Misuse("verify needs a log")
	}
	return c.verifyLog(s, args[0])
}

func (c *invocation) verifyLog(s *verifyFlags, name string) int {
	if err := s.trust.Check(); err != nil {
		return c.MisuseOf(err)
	}
	log, err := audit.OpenFile(name)
	if err != nil {
		return c.Stop(err)
	}
	defer log.Close()
	if s.signed != "" {
		if s.trust.Cosigned, err = audit.ReadCosigned(s.signed); err != nil {
			return c.Stop(err)
		}
	}
	process.SaveMemory()
	found := audit.Inspect(log, s.trust)
	err = c.Answer(s.format, func() error { return json.NewEncoder(c.Stdout).Encode(found) }, func(w io.Writer) error {
		_, err := fmt.Fprintln(w, terminal.Line(found.String()))
		return err
	})
	whole := found.Complete() || s.any && found.Sealed()
	if found.Sealed() && !whole {
		c.Warn("the log may have been replaced and signed again; name --key or --checkpoint from the report, or accept its key with --untrusted-key")
	}
	return c.Exit(codeOf(found, whole), err)
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
	data, err := audit.ReadProof(s.proof)
	if err != nil {
		return c.Stop(err)
	}
	var answer any
	var text string
	code := exitOK
	if proved, wrong := audit.CheckProof(data, s.trust); wrong != nil {
		answer, text, code = map[string]string{"error": wrong.Error()}, wrong.Error(), exitRefused
	} else {
		answer, text = proved, proved.String()
	}
	return c.Exit(code, c.Answer(s.format, func() error { return json.NewEncoder(c.Stdout).Encode(answer) }, func(w io.Writer) error {
		sentence, entry, more := strings.Cut(text, "\n")
		if more && code == exitOK {
			_, err := fmt.Fprintf(w, "%s\n%s\n", terminal.Line(sentence), terminal.Line(entry))
			return err
		}
		_, err := fmt.Fprintln(w, terminal.Line(text))
		return err
	}))
}

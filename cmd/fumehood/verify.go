// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fumehood/fumehood/pkg/attestation"
	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/cli"
	"github.com/fumehood/fumehood/pkg/evidence"
	"github.com/fumehood/fumehood/pkg/process"
	"github.com/fumehood/fumehood/pkg/report"
	"github.com/fumehood/fumehood/pkg/terminal"
)

// verifyFlags are the flags of verify.
type verifyFlags struct {
	trust  audit.Trust
	any    bool // accept the key in the log's header
	proof  string
	signed string // file with a cosigned checkpoint
	attest attestation.Options
	format cli.Format
}

func (c *invocation) verifyCommand() *cobra.Command {
	var s verifyFlags
	cmd := &cobra.Command{
		Use: `verify LOG [flags]
LOG --cosigned FILE --key KEY [flags]
LOG --attestation BUNDLE --trusted-root FILE --certificate-identity ID [flags]
--proof FILE --key KEY [flags]`,
		GroupID: cli.GroupEvidence,
		Short:   "Check that an audit log is complete and unaltered",
		Long: `Check that an audit log is complete and unaltered, or report its first fault. With --proof,
check a proof that fumehood prove printed; the log is not needed.

A log verifies with the key in its own header, so who can replace it can also sign another
one. Name the key or the checkpoint that you know from elsewhere: from the report, or from the
comment on the pull request. With --cosigned, name the key that the job which reported the run
has as its input audit-key.

With --attestation, the log's SHA-256 must be a subject of a Sigstore attestation, signed by this
identity. Nothing is fetched: name the trusted root, for example from gh attestation trusted-root.
The answer says as what the log is attested (the predicate's type); the rest of the predicate is
not read.

Exit codes: 0 complete and sealed, or a valid proof; 1 altered, cut off or not sealed, signed by
a key that is not vouched for, not attested, or an invalid proof; 3 cannot be read`,
		Example: `  fumehood verify audit.jsonl --report report.json
  fumehood verify audit.jsonl --cosigned audit.cosigned --key "$(cat audit.pub)"
  fumehood verify audit.jsonl --attestation bundle.jsonl --trusted-root trusted_root.jsonl \
    --certificate-identity https://github.com/OWNER/NAME/.github/workflows/evidence.yml@refs/heads/main
  fumehood verify --proof unit.tlog-proof --report report.json`,
		ValidArgsFunction: cli.Once,
		RunE:              c.Run(func(args []string) int { return c.verify(&s, args) }),
	}
	cmd.Flags().StringVar(&s.proof, "proof", "", "`FILE` check the proof in this file instead of a log")
	cmd.Flags().StringVar(&s.signed, "cosigned", "", "`FILE` checkpoint that --key has cosigned and the log must end with")
	cmd.Flags().BoolVar(&s.any, "untrusted-key", false, "accept the key in the log, for a log that was in your hands all the time")
	s.format.Define(cmd, cli.Text, cli.JSON, cli.Markdown)
	defineTrust(cmd, &s.trust, true)
	cli.Group(cmd, "Attestation flags", func(f *pflag.FlagSet) {
		f.StringVar(&s.attest.Bundle, "attestation", "", "`FILE` Sigstore bundles, of which one must be about the log")
		f.StringVar(&s.attest.Root, "trusted-root", "", "`FILE` trusted roots of Sigstore, of which one must have signed the certificate")
		f.StringVar(&s.attest.Identity, "certificate-identity", "", "`ID` identity of the signer, exactly: the URL of the workflow, with its ref")
		f.StringVar(&s.attest.Issuer, "certificate-oidc-issuer", attestation.GitHubIssuer, "`URL` issuer of the identity")
	})
	cli.NoFiles(cmd, "certificate-identity")
	cli.NoFiles(cmd, "certificate-oidc-issuer")
	return cmd
}

// defineTrust defines the flags that say what a log must agree with.
func defineTrust(cmd *cobra.Command, trust *audit.Trust, checkpoint bool) {
	cli.Group(cmd, "Trust flags", func(f *pflag.FlagSet) {
		f.StringVar(&trust.Key, "key", "", "`KEY` verifier key that the log must be signed with, from the report")
		if checkpoint {
			f.StringVar(&trust.Checkpoint, "checkpoint", "", "`CHECKPOINT` checkpoint that the log must contain, from the report")
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

func (c *invocation) verify(s *verifyFlags, args []string) int {
	switch {
	case s.attested() && !s.onlyAttested():
		return c.Misuse("verify --attestation needs a log, --trusted-root, --certificate-identity and an issuer, and nothing else to trust")
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

// attested reports whether a flag about an attestation is used.
func (s *verifyFlags) attested() bool {
	return s.attest != attestation.Options{Issuer: attestation.GitHubIssuer}
}

// onlyAttested reports whether all flags about an attestation have a value, and no other says
// what to trust.
func (s *verifyFlags) onlyAttested() bool {
	a := s.attest
	all := a.Bundle != "" && a.Root != "" && a.Identity != "" && a.Issuer != ""
	return all && s.trust == audit.Trust{} && s.signed == "" && s.proof == "" && !s.any
}

func (c *invocation) verifyLog(s *verifyFlags, name string) int {
	if err := s.trust.Check(); err != nil {
		return c.MisuseOf(err)
	}
	check := evidence.Check{Trust: s.trust, Cosigned: s.signed, AnyKey: s.any}
	if s.attested() {
		check.Attestation = s.attest
	}
	process.SaveMemory()
	found, err := check.Log(name)
	if err != nil {
		return c.Stop(err)
	}
	err = c.Answer(s.format, func() error { return json.NewEncoder(c.Stdout).Encode(found.Finding) }, func(w io.Writer) error {
		_, err := fmt.Fprintln(w, terminal.Line(found.String()))
		return err
	})
	if found.Replaceable() {
		c.Warn("the log may have been replaced and signed again; name --key or --checkpoint from the report, or accept its key with --untrusted-key")
	}
	return c.Exit(codeOf(found.Finding, found.Whole), err)
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
	found, err := evidence.Proof(s.proof, s.trust)
	if err != nil {
		return c.Stop(err)
	}
	code := exitOK
	if found.Fault != nil {
		code = exitRefused
	}
	return c.Exit(code, c.Answer(s.format, func() error { return json.NewEncoder(c.Stdout).Encode(found) }, func(w io.Writer) error {
		for _, line := range strings.SplitN(found.String(), "\n", 2) {
			if _, err := fmt.Fprintln(w, terminal.Line(line)); err != nil {
				return err
			}
		}
		return nil
	}))
}

// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/cli"
	"github.com/fumehood/fumehood/pkg/ledger"
)

func (c *invocation) ledgerCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "ledger",
		GroupID: cli.GroupEvidence,
		Short:   "Keep one append-only log of the audit logs of many runs",
		Long: `Keep one append-only log of the audit logs of many runs, in a directory that can be copied or
served as it is (C2SP tlog-tiles). Its entries are the last checkpoints of sealed logs, so that
a run cannot be left out, replaced or dated back later without a change that shows. See docs/LEDGER.md.`,
		Example: `  fumehood ledger append ./ledger audit.jsonl --signing-key ledger.key --report report.json
  fumehood ledger verify ./ledger --key "$(cat ledger.pub)"`,
	}
	cmd.AddCommand(c.ledgerAppendCommand(), c.ledgerProveCommand(), c.ledgerCheckCommand(), c.ledgerVerifyCommand())
	return cmd
}

func (c *invocation) ledgerAppendCommand() *cobra.Command {
	var trust audit.Trust
	var key string
	cmd := &cobra.Command{
		Use:   "append DIRECTORY LOG --signing-key FILE [flags]",
		Short: "Add the log of a run",
		Long: `Add the log of a run, which must be complete and sealed. Name the key or the checkpoint that the
run's report has, as for verify. A log that the ledger has is not added again. The directory is
made if it does not exist.`,
		Example: `  fumehood key generate ledger.key --log acme.example/ledger > ledger.pub
  fumehood ledger append ./ledger audit.jsonl --signing-key ledger.key --report report.json`,
		Args:              cli.Args(2, "a ledger and a log"),
		ValidArgsFunction: cli.Once,
		RunE:              c.Run(func(args []string) int { return c.appendLedger(args[0], args[1], key, trust) }),
	}
	cmd.Flags().StringVar(&key, "signing-key", "", "`FILE` private key of the ledger, as key generate --log makes it")
	defineTrust(cmd, &trust, true)
	return cmd
}

func (c *invocation) appendLedger(dir, log, key string, trust audit.Trust) int {
	if key == "" || trust == (audit.Trust{}) {
		return c.Misuse("ledger append needs --signing-key, and --key or --checkpoint of the run")
	}
	if err := trust.Check(); err != nil {
		return c.MisuseOf(err)
	}
	n, h, err := ledger.AppendLog(dir, log, key, trust)
	return c.answerLedger(fmt.Sprintf("entry %d of %d\n", n, h.Size), err)
}

func (c *invocation) ledgerProveCommand() *cobra.Command {
	var key string
	cmd := &cobra.Command{
		Use:   "prove DIRECTORY LOG --key KEY",
		Short: "Print a proof that the log of a run is in a ledger",
		Example: `  fumehood ledger prove ./ledger audit.jsonl --key "$(cat ledger.pub)" > run.tlog-proof
  fumehood ledger check run.tlog-proof audit.jsonl --key "$(cat ledger.pub)"`,
		Args:              cli.Args(2, "a ledger and a log"),
		ValidArgsFunction: cli.Once,
		RunE: c.Run(func(args []string) int {
			return c.withLedger(args[0], key, func(l *ledger.Ledger) (string, error) {
				proof, err := l.ProveLog(args[1])
				return string(proof), err
			})
		}),
	}
	defineLedgerKey(cmd, &key)
	return cmd
}

func (c *invocation) ledgerCheckCommand() *cobra.Command {
	var key string
	cmd := &cobra.Command{
		Use:   "check PROOF LOG --key KEY",
		Short: "Check a proof that the log of a run is in a ledger",
		Long: `Check a proof that the log of a run is in a ledger, without the ledger.

Exit codes: 0 valid, 1 invalid or of another log, 3 cannot be read`,
		Example:           `  fumehood ledger check run.tlog-proof audit.jsonl --key "$(cat ledger.pub)"`,
		Args:              cli.Args(2, "a proof and a log"),
		ValidArgsFunction: cli.Once,
		RunE: c.Run(func(args []string) int {
			return c.withLedger("", key, func(l *ledger.Ledger) (string, error) {
				n, err := l.CheckLog(args[0], args[1])
				return fmt.Sprintf("valid proof: the log is entry %d of the ledger\n", n), err
			})
		}),
	}
	defineLedgerKey(cmd, &key)
	return cmd
}

func (c *invocation) ledgerVerifyCommand() *cobra.Command {
	var key, since string
	var witnesses cli.List
	cmd := &cobra.Command{
		Use:   "verify DIRECTORY --key KEY [flags]",
		Short: "Check a whole ledger, and that it contains an earlier one",
		Long: `Check that the entries of a ledger are those that its key has signed. With --since, also that it
contains the ledger that an earlier checkpoint file is of; with --witness, that witnesses have
cosigned its checkpoint (C2SP tlog-cosignature).

Exit codes: 0 all is so, 1 it is not, 3 cannot be read`,
		Example: `  fumehood ledger verify ./ledger --key "$(cat ledger.pub)"
  fumehood ledger verify ./ledger --key "$(cat ledger.pub)" --since last-month/checkpoint`,
		Args:              cli.Args(1, "a ledger"),
		ValidArgsFunction: cli.Once,
		RunE: c.Run(func(args []string) int {
			return c.withLedger(args[0], key, func(l *ledger.Ledger) (string, error) {
				text, err := l.CheckAll(since, witnesses)
				return text + "\n", err
			})
		}),
	}
	defineLedgerKey(cmd, &key)
	cmd.Flags().StringVar(&since, "since", "", "`FILE` earlier checkpoint of this ledger")
	cmd.Flags().Var(&witnesses, "witness", "`KEY` key of a witness that must have cosigned; may be repeated")
	cli.NoFiles(cmd, "witness")
	return cmd
}

func defineLedgerKey(cmd *cobra.Command, key *string) {
	cmd.Flags().StringVar(key, "key", "", "`KEY` verifier key of the ledger, which key public prints")
	cli.NoFiles(cmd, "key")
}

// withLedger opens a ledger, and prints what f says of it.
func (c *invocation) withLedger(dir, key string, f func(*ledger.Ledger) (string, error)) int {
	if key == "" {
		return c.Misuse("a ledger needs --key")
	}
	l, err := ledger.Open(dir, key)
	if err != nil {
		return c.MisuseOf(err)
	}
	text, err := f(l)
	return c.answerLedger(text, err)
}

// answerLedger prints text, or what does not hold.
func (c *invocation) answerLedger(text string, err error) int {
	if err == nil {
		return c.Exit(exitOK, c.Print([]byte(text), nil))
	}
	code := c.Stop(err)
	if ledger.Refuted(err) {
		return exitRefused
	}
	return code
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli"
	"github.com/fumehood/fumehood/internal/evidence/key"
)

func (c *invocation) keyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "key",
		GroupID: cli.GroupEvidence,
		Short:   "Make keys that sign audit logs and policy bundles, and print their public halves",
		Example: `  fumehood key generate audit.key --log acme.example/fumehood
  fumehood key public audit.key`,
	}
	cmd.AddCommand(c.keyGenerateCommand(), c.keyPublicCommand())
	return cmd
}

func (c *invocation) keyGenerateCommand() *cobra.Command {
	var name string
	var bundle bool
	cmd := &cobra.Command{
		Use: `generate FILE --log NAME
FILE --bundle`,
		Short: "Write a new private key to a file, and print its public key",
		Long: `Write a new private key (Ed25519) to a new file of mode 0600, and print its public key. A file
that exists is never overwritten. The private key is not encrypted: move it to a secret store.`,
		Example: `  fumehood key generate audit.key --log acme.example/fumehood > audit.pub
  fumehood run --plan plan.yaml --audit-key audit.key
  fumehood verify audit.jsonl --key "$(cat audit.pub)"
  fumehood key generate policy.pem --bundle > policy.pub
  fumehood policy bundle build ./policy --signing-key policy.pem --out policy.tar.gz
  fumehood policy bundle verify policy.tar.gz --policy-key policy.pub`,
		ValidArgsFunction: cli.CompleteFirstFile,
		RunE:              c.Run(func(args []string) int { return c.generateKey(args, name, bundle) }),
	}
	cmd.Flags().StringVar(&name, "log", "",
		"`NAME` make a key for logs (--audit-key) with this name, for example HOST/fumehood")
	cmd.Flags().BoolVar(&bundle, "bundle", false, "make a key for policy bundles (--signing-key)")
	cli.NoFiles(cmd, "log")
	return cmd
}

func (c *invocation) generateKey(args []string, name string, bundle bool) int {
	if len(args) != 1 || bundle == (name != "") {
		return c.ReportMisuse("key generate needs one file and either --log NAME or --bundle")
	}
	var public string
	var err error
	if bundle {
		public, err = key.GenerateBundle(args[0])
	} else {
		public, err = key.GenerateLog(args[0], name)
	}
	return c.ExitCode(exitOK, c.Print([]byte(public), err))
}

func (c *invocation) keyPublicCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "public FILE",
		Short: "Print the public key of a private key",
		Long: `Print the public key of a private key: the verifier key of a log's (verify --key), PEM of a
bundle's (--policy-key), also for one that openssl made.`,
		Example: `  fumehood key public audit.key
  fumehood key public policy.pem > policy.pub`,
		Args:              cli.RequireArgs(1, "a private key"),
		ValidArgsFunction: cli.CompleteFirstFile,
		RunE: c.Run(func(args []string) int {
			public, err := key.ReadPublic(args[0])
			return c.ExitCode(exitOK, c.Print([]byte(public), err))
		}),
	}
}

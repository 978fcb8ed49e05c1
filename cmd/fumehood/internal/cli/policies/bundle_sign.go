// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"cmp"
	"encoding/json"
	"io"

	"github.com/spf13/cobra"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli"
	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli/runs"
	"github.com/fumehood/fumehood/cmd/fumehood/internal/settings"
	"github.com/fumehood/fumehood/internal/policy"
	policysource "github.com/fumehood/fumehood/internal/policy/source"
)

func bundleSignCommand(c *cli.Invocation) *cobra.Command {
	var out string
	var signature policysource.Signing
	cmd := &cobra.Command{
		Use:   "sign FILE.tar.gz --signing-key FILE [flags]",
		Short: "Sign a bundle, also one that opa built",
		Long: `Sign a bundle, also one that opa built. The signature covers the SHA-256 of every file and
replaces an earlier one. It changes the bundle's digest, which is printed.`,
		Example: `  fumehood policy bundle sign policy.tar.gz --signing-key key.pem
  fumehood policy bundle sign policy.tar.gz --signing-key key.pem --scope read --out signed.tar.gz`,
		ValidArgsFunction: cli.CompleteFirstFile,
		RunE:              c.Run(func(args []string) int { return signBundle(c, args, out, signature) }),
	}
	cmd.Flags().StringVar(&out, "out", "", "`FILE` write the signed bundle to this file (default: the bundle itself)")
	defineSigning(cmd, &signature)
	return cmd
}

func signBundle(c *cli.Invocation, args []string, out string, signature policysource.Signing) int {
	if len(args) != 1 || signature.Key == "" {
		return c.ReportMisuse("policy bundle sign needs one bundle and --signing-key")
	}
	if out != "" && !policysource.IsBundleName(out) {
		return c.ReportMisuse("the name after --out must end in .tar.gz: another file is not read as a bundle")
	}
	data, err := policysource.ReadFile(args[0])
	if err == nil {
		data, err = signature.Sign(args[0], data)
	}
	if err != nil {
		return c.Stop(err)
	}
	return writeBundle(c, cmp.Or(out, args[0]), data)
}

// bundleVerifyFlags are the flags of policy bundle verify.
type bundleVerifyFlags struct {
	from   settings.Sources
	format cli.Format
}

func bundleVerifyCommand(c *cli.Invocation) *cobra.Command {
	var s bundleVerifyFlags
	cmd := &cobra.Command{
		Use:   "verify BUNDLE [--policy-key FILE] [flags]",
		Short: "Check that a bundle is signed with a key, new enough and compiles",
		Long: `Check that a bundle is signed with a key, new enough and compiles. BUNDLE is FILE.tar.gz,
https://HOST/FILE.tar.gz@sha256:HEX or oci://REGISTRY/REPOSITORY@sha256:HEX.

Exit codes: 0 the bundle meets all requirements; 1 it does not, with a message that says why;
3 it cannot be read`,
		Example: `  fumehood policy bundle verify policy.tar.gz --policy-key key.pub --minimum-revision 14
  fumehood policy bundle verify oci://registry.example/acme/policy@sha256:… --policy-key key.pub --json`,
		ValidArgsFunction: cli.CompleteFirstFile,
		RunE:              c.Run(func(args []string) int { return verifyBundle(c, &s, args) }),
	}
	f := cmd.Flags()
	f.Var((*cli.List)(&s.from.Keys), "policy-key",
		"`FILE` public key that must have signed it, PEM, or hs256:FILE with a shared secret; of several, in one file or repeated, any one")
	f.StringVar(&s.from.Scope, "scope", "", "`SCOPE` scope that the signature must have")
	f.StringVar(&s.from.MinimumRevision, "minimum-revision", "",
		"`REVISION` oldest revision that it may have: an integer or an RFC 3339 time")
	s.format.Define(cmd, cli.Text, cli.JSON, cli.Markdown)
	cli.NoFiles(cmd, "scope", "minimum-revision")
	return cmd
}

func verifyBundle(c *cli.Invocation, s *bundleVerifyFlags, args []string) int {
	if len(args) != 1 || !policysource.IsBundle(args[0]) {
		return c.ReportMisuse("policy bundle verify needs one bundle: FILE.tar.gz, https://…@sha256:… or oci://…@sha256:…")
	}
	s.from.Organisation = args
	list, err := s.from.Read(c.Ctx)
	if err == nil {
		_, err = runs.NewEngine(c.Ctx, policy.Options{Layers: settings.LayersOf(list)})
	}
	if err != nil {
		return reportUnverified(c, err)
	}
	origin := list[0].Origin
	return c.ExitCode(cli.OK, c.PrintAnswer(s.format, func() error { return c.PrintJSON(json.Marshal(origin)) },
		func(w io.Writer) error { return policysource.WriteOrigin(w, origin) }))
}

// reportUnverified returns Refused for a bundle that does not meet the requirements, and Stopped
// for one that could not be read.
func reportUnverified(c *cli.Invocation, err error) int {
	code := c.Stop(err)
	if policysource.IsUnread(err) {
		return code
	}
	return cli.Refused
}

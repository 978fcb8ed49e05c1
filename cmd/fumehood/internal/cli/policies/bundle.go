// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli"
	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli/runs"
	"github.com/fumehood/fumehood/internal/gate/policyrepo"
	"github.com/fumehood/fumehood/internal/kit/terminal"
	"github.com/fumehood/fumehood/internal/policy"
	policysource "github.com/fumehood/fumehood/internal/policy/source"
	"github.com/fumehood/fumehood/pkg/proposal"
)

func bundleCommand(c *cli.Invocation) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bundle",
		Short: "Build, sign and verify policy bundles, as opa does",
		Long: `Build, sign and verify policy bundles. A bundle is a tar.gz of Rego and data that opa can read,
too. A team builds and signs one, and each repository refers to it by its digest, or by the name
of the repository on GitHub that has it.`,
		Example: `  fumehood key generate key.pem --bundle > key.pub
  fumehood policy bundle build ./policy --revision 1 --signing-key key.pem --out policy.tar.gz
  fumehood policy bundle verify policy.tar.gz --policy-key key.pub --minimum-revision 1
  fumehood check --plan plan.yaml --organization policy.tar.gz --policy-key key.pub`,
	}
	cmd.AddCommand(bundleBuildCommand(c), bundleSignCommand(c), bundleVerifyCommand(c))
	return cmd
}

// bundleFlags are the flags of policy bundle build.
type bundleFlags struct {
	out, revision string
	roots         cli.List
	tests         bool
	maxCopyAge    time.Duration
	signature     policysource.Signing
}

func bundleBuildCommand(c *cli.Invocation) *cobra.Command {
	var s bundleFlags
	cmd := &cobra.Command{
		Use:   "build DIR --out FILE.tar.gz [flags]",
		Short: "Build a bundle from a directory of Rego and data; the result is reproducible",
		Long: `Build a bundle from a directory of Rego and data. The result is reproducible: the same input
gives the same bytes. The policy is compiled first. The bundle's digest, by which it can be
pinned, is printed.

The bundle contains .rego files, data.json and data.yaml; tests only with --tests. DIR may
also be git:REV:DIR, for a bundle of what was committed.`,
		Example: `  fumehood policy bundle build ./policy --out policy.tar.gz
  fumehood policy bundle build git:v1.4.0:policy --revision 14 --signing-key key.pem --out policy.tar.gz`,
		RunE: c.Run(func(args []string) int { return buildBundle(c, &s, args) }),
	}
	f := cmd.Flags()
	f.StringVar(&s.out, "out", "", "`FILE` write the bundle to this file, FILE.tar.gz")
	f.StringVar(&s.revision, "revision", "",
		"`REVISION` revision of the bundle: an integer or an RFC 3339 time, so that --minimum-revision can refuse older ones")
	f.Var(&s.roots, "root", "`PATH` the only path of packages and data in the bundle, such as fumehood/command; may be repeated (default: all)")
	f.DurationVar(&s.maxCopyAge, "max-copy-age", 0,
		"`DURATION` how long a job may use its last copy of the bundle if GitHub does not answer, at most 720h (default: not at all)")
	f.BoolVar(&s.tests, "tests", false, "include _test.rego files and cases")
	defineSigning(cmd, &s.signature)
	cli.NoFiles(cmd, "revision", "root")
	return cmd
}

func defineSigning(cmd *cobra.Command, s *policysource.Signing) {
	cli.DefineGroup(cmd, "Signing flags", func(f *pflag.FlagSet) {
		f.StringVar(&s.Key, "signing-key", "", "`FILE` private key, PEM, or hs256:FILE with a shared secret")
		f.StringVar(&s.KeyID, "key-id", policysource.DefaultKeyID,
			"`NAME` name of the key in the signature, by which opa looks it up")
		f.StringVar(&s.Scope, "scope", "", "`SCOPE` scope of the signature, which verification must name, too")
	})
	cli.NoFiles(cmd, "key-id", "scope")
}

func buildBundle(c *cli.Invocation, s *bundleFlags, args []string) int {
	if len(args) != 1 || s.out == "" {
		return c.ReportMisuse("policy bundle build needs one directory and --out")
	}
	if !policysource.IsBundleName(s.out) {
		return c.ReportMisuse("the name after --out must end in .tar.gz: another file is not read as a bundle")
	}
	if err := policysource.CheckMinimum(s.revision); err != nil {
		return c.ReportMisuse(fmt.Sprintf("invalid revision %q: use an integer or an RFC 3339 time", s.revision))
	}
	if s.maxCopyAge < 0 || s.maxCopyAge > policysource.LimitCopyAge {
		return c.ReportMisuse(fmt.Sprintf("--max-copy-age %v is not a duration from 0 to %v", s.maxCopyAge, policysource.LimitCopyAge))
	}
	data, err := compileBundle(c, s, args[0])
	if err != nil {
		return c.Stop(err)
	}
	return writeBundle(c, s.out, data)
}

// compileBundle compiles the policy in dir and returns it as a bundle.
func compileBundle(c *cli.Invocation, s *bundleFlags, dir string) ([]byte, error) {
	l, _, err := policysource.Read(c.Ctx, dir, policysource.Options{Repository: policyrepo.OpenDirectory(".")})
	if err != nil {
		return nil, err
	}
	l.Role = policy.Allows
	if _, err := runs.NewEngine(c.Ctx, policy.Options{Layers: []policy.Layer{l}}); err != nil {
		return nil, err
	}
	data, err := policysource.Build(policysource.Recipe{Files: l.Files, Revision: s.revision, Roots: s.roots,
		Tests: s.tests, MaxCopyAge: s.maxCopyAge})
	if err != nil {
		return nil, err
	}
	return s.signature.Sign(s.out, data)
}

func writeBundle(c *cli.Invocation, name string, data []byte) int {
	if err := cli.ReplaceFile(name, data); err != nil {
		return c.Stop(&proposal.StopError{Code: "policy.write", Message: fmt.Sprintf("cannot write %q", name),
			Hint: cli.HintUnwritable, Err: err})
	}
	fmt.Fprintf(c.Stdout, "%s@%s\n", terminal.EscapeLine(name), policysource.Digest(data))
	return cli.OK
}

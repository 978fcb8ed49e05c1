// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"flag"
	"fmt"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/policy"
	policysource "github.com/fumehood/fumehood/pkg/policy/source"
	"github.com/fumehood/fumehood/pkg/proposal"
	"github.com/fumehood/fumehood/pkg/terminal"
)

func policyBundleCommand() *command {
	d := &command{name: "policy bundle", synopsis: "pack a policy as opa does, sign it, verify it"}
	d.run = group{command: d, commands: []*command{bundleBuildCommand(), bundleSignCommand(), bundleVerifyCommand()}, about: `A bundle is a tar.gz of Rego and data that opa reads as well. A team builds and signs
one, and each repository names it by its digest:

  openssl genpkey -algorithm ed25519 -out key.pem
  openssl pkey -in key.pem -pubout -out key.pub
  fumehood policy bundle build ./policy --revision 1 --signing-key key.pem --output policy.tar.gz
  fumehood policy bundle verify policy.tar.gz --policy-key key.pub --minimum-revision 1
  fumehood check --plan plan.yaml --organisation policy.tar.gz --policy-key key.pub

`}.run
	return d
}

func bundleBuildCommand() *command {
	return &command{
		name:     "policy bundle build",
		synopsis: "pack a folder of Rego and data into a bundle, the same bytes each time",
		usage: `FOLDER --output FILE.tar.gz [flags]

The policy is compiled first. What is printed is the bundle's digest, to pin it with.
Of a folder there go in .rego files, data.json and data.yaml; tests only with --tests.
FOLDER may also be git:REV:FOLDER, for a bundle of what was committed.

examples:
  fumehood policy bundle build ./policy --output policy.tar.gz
  fumehood policy bundle build git:v1.4.0:policy --revision 14 --signing-key key.pem --output policy.tar.gz
`,
		run: buildBundle,
	}
}

func defineSigning(s *policysource.Signing, f *flag.FlagSet) {
	f.StringVar(&s.Key, "signing-key", "", "PEM `file` with the private key, or hs256:FILE with a shared secret")
	f.StringVar(&s.KeyID, "key-id", policysource.DefaultKeyID, "the key's `name` in the signature, by which opa looks for it")
	f.StringVar(&s.Scope, "scope", "", "`scope` of the signature, which who verifies must name too")
}

func buildBundle(c *invocation) int {
	var output, revision string
	var roots cli.List
	var tests bool
	var signature policysource.Signing
	f := c.Flags()
	f.StringVar(&output, "output", "", "`file` to write, FILE.tar.gz")
	f.StringVar(&revision, "revision", "", "the bundle's revision: an integer or an RFC 3339 time, so that --minimum-revision can refuse older ones")
	f.Var(&roots, "root", "the only `path` of packages and data in the bundle, such as fumehood/command; may be repeated (default: all)")
	f.BoolVar(&tests, "tests", false, "take _test.rego files and cases along")
	defineSigning(&signature, f)
	args, code, ok := c.ParseMixed(f)
	if !ok {
		return code
	}
	if len(args) != 1 || output == "" {
		return c.Misuse("policy bundle build needs one folder and --output")
	}
	if err := policysource.CheckMinimum(revision); err != nil {
		return c.Misuse(fmt.Sprintf("the revision %q is neither an integer nor an RFC 3339 time", revision))
	}
	l, _, err := policysource.Read(c.Ctx, args[0], policysource.Options{Repository: gate.OpenRepository(".")})
	if err != nil {
		return c.Stop(err)
	}
	l.Role = policy.Allows
	if _, err := newEngine(c.Ctx, policy.Options{Layers: []policy.Layer{l}}); err != nil {
		return c.Stop(err)
	}
	data, err := policysource.Build(policysource.Recipe{Files: l.Files, Revision: revision, Roots: roots, Tests: tests})
	if err == nil {
		data, err = signature.Sign(output, data)
	}
	if err != nil {
		return c.Stop(err)
	}
	return c.writeBundle(output, data)
}

func (c *invocation) writeBundle(name string, data []byte) int {
	if err := replaceFile(name, data); err != nil {
		return c.Stop(&proposal.StopError{Code: "policy.write", Message: fmt.Sprintf("cannot write %q", name), Hint: hintUnwritable, Err: err})
	}
	fmt.Fprintf(c.Stdout, "%s@%s\n", terminal.Line(name), policysource.Digest(data))
	return exitOK
}

// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"text/tabwriter"

	policysource "github.com/fumehood/fumehood/pkg/policy/source"
	"github.com/fumehood/fumehood/pkg/proposal"
)

func bundleSignDoor() *door {
	return &door{
		name:     "policy bundle sign",
		synopsis: "sign a bundle, also one that opa built",
		usage: `FILE.tar.gz --signing-key KEY [flags]

The signature covers every file by SHA-256, in place of one that was there. The bundle
gets another digest by it, which is printed.

examples:
  fumehood policy bundle sign policy.tar.gz --signing-key key.pem
  fumehood policy bundle sign policy.tar.gz --signing-key key.pem --scope read --output signed.tar.gz
`,
		run: signBundle,
	}
}

func signBundle(c *call) int {
	var output string
	var signature signing
	f := c.flags()
	f.StringVar(&output, "output", "", "`file` to write (default: the bundle itself)")
	signature.define(f)
	args, code, ok := c.parseMixed(f)
	if !ok {
		return code
	}
	if len(args) != 1 || signature.key == "" {
		return c.misuse("policy bundle sign needs one bundle and --signing-key")
	}
	if output == "" {
		output = args[0]
	}
	data, err := readBundleFile(args[0])
	if err == nil {
		data, err = signature.sign(args[0], data)
	}
	if err != nil {
		return c.stopped(err)
	}
	return c.writeBundle(output, data)
}

const maxBundle = 8 << 20

func readBundleFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, &proposal.StopError{Code: "policy.missing", Message: fmt.Sprintf("cannot open the bundle %q", name), Hint: "is its name spelt right?", Err: err}
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxBundle+1)) // one byte more, which is refused
}

func bundleVerifyDoor() *door {
	return &door{
		name:     "policy bundle verify",
		synopsis: "say whether a bundle is signed with a key, new enough and fit to decide",
		usage: `BUNDLE [--policy-key KEY] [flags]

BUNDLE is FILE.tar.gz, https://HOST/FILE.tar.gz@sha256:HEX or oci://REGISTRY/REPOSITORY@sha256:HEX.
Exit code 0: it is all that was asked. 1: it is not, and the message says what.

examples:
  fumehood policy bundle verify policy.tar.gz --policy-key key.pub --minimum-revision 14
  fumehood policy bundle verify oci://registry.example/acme/policy@sha256:… --policy-key key.pub --json
`,
		run: verifyBundle,
	}
}

func verifyBundle(c *call) int {
	var policies chosen
	var asJSON bool
	f := c.flags()
	f.StringVar(&policies.key, "policy-key", "", "PEM `file` with the public key that must have signed it, or hs256:FILE with a shared secret")
	f.StringVar(&policies.scope, "scope", "", "`scope` that the signature must have")
	f.StringVar(&policies.minimum, "minimum-revision", "", "oldest `revision` that it may have: an integer or an RFC 3339 time")
	f.BoolVar(&asJSON, "json", false, "print what it is as JSON")
	args, code, ok := c.parseMixed(f)
	if !ok {
		return code
	}
	if len(args) != 1 || !policysource.IsBundle(args[0]) {
		return c.misuse("policy bundle verify needs one bundle: FILE.tar.gz, https://…@sha256:… or oci://…@sha256:…")
	}
	policies.organisation = args
	if _, err := policies.engine(c.ctx, false); err != nil {
		return c.unverified(err)
	}
	return c.printOrigin(policies.origins[len(policies.origins)-1], asJSON)
}

// unverified tells a bundle that is not what was asked from one that could not be had.
func (c *call) unverified(err error) int {
	code := c.stopped(err)
	ours := []string{policysource.CodeFetch, policysource.CodeKey, policysource.CodeSource, "policy.missing"}
	if slices.Contains(ours, proposal.FailureOf(err).Code) {
		return code
	}
	return exitRefused
}

func (c *call) printOrigin(o policysource.Origin, asJSON bool) int {
	if asJSON {
		if err := c.printJSON(json.Marshal(o)); err != nil {
			return c.stopped(err)
		}
		return exitOK
	}
	w := tabwriter.NewWriter(c.stdout, 0, 0, 2, ' ', 0)
	signed := o.SignedBy
	if signed == "" {
		signed = "nobody whose key was given"
	}
	for _, row := range [][2]string{{"bundle", o.Spec}, {"digest", o.Digest}, {"revision", o.Revision}, {"signed by", signed}} {
		if row[1] != "" {
			fmt.Fprintf(w, "%s\t%s\n", row[0], printable(row[1]))
		}
	}
	if err := w.Flush(); err != nil {
		return c.stopped(err)
	}
	return exitOK
}

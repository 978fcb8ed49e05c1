// SPDX-License-Identifier: Apache-2.0

// Command fumehood-release builds what the action installs: one archive per architecture, a
// software bill of materials (CycloneDX) for each, and release.env with the digests. With --node, it
// also builds an archive for nodes of Kubernetes.
//
//	go run ./tools/release --version v1.2.3 --node --out DIR
//	go run ./tools/release --version v1.2.3 --node --out DIR --check release.env
//	go run ./tools/release --arch amd64 --out DIR
//
// It promises that the same commit, Go and C compiler give the same bytes, in any
// directory, at any time and for any user. So anyone can check a release.env that was
// committed before the tag against the tag's sources, with --check. Without --version it
// makes the build that the action uses when it runs from a checkout of this repository.
//
// It does not protect against a malicious compiler or module proxy beyond go.sum and the
// recorded version of the compiler. It neither signs nor uploads; the release workflow
// does.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"strings"
	"syscall"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// versions matches the valid versions of a release, which become part of a linker flag,
// of file names and of a URL.
var versions = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9a-z.]+)?$`)

// releaseFlags are the flags of the command line.
type releaseFlags struct {
	version, out, check, root string
	archs                     []string
	node                      bool
	progress                  func(string)
}

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stderr)
	cancel()
	os.Exit(code)
}

// run is main without the process. Exit codes: 0 built, 1 built but different from --check,
// 2 usage, 3 not built.
func run(ctx context.Context, args []string, stderr io.Writer) int {
	o, err := readFlags(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintf(stderr, "fumehood-release: %v\n", err)
		return 2
	}
	o.progress = func(line string) { fmt.Fprintf(stderr, "fumehood-release: %s\n", line) }
	built, err := o.build(ctx)
	if err != nil {
		f := proposal.FailureOf(err)
		fmt.Fprintf(stderr, "fumehood-release: %s: %s\n", f.Code, f.Message)
		return 3
	}
	if o.check == "" {
		return 0
	}
	if differences := built.compare(o.check); len(differences) > 0 {
		fmt.Fprintf(stderr, "fumehood-release: the build differs from %s:\n%s\n", o.check,
			strings.Join(differences, "\n"))
		return 1
	}
	return 0
}

func readFlags(args []string, stderr io.Writer) (releaseFlags, error) {
	var o releaseFlags
	var archs string
	f := flag.NewFlagSet("fumehood-release", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&o.version, "version", "", "version of the release, such as v1.2.3; empty for a build from source")
	f.StringVar(&o.out, "out", "", "new directory for the archives and release.env")
	f.StringVar(&o.check, "check", "", "compare the result with this release.env, line by line")
	f.StringVar(&o.root, "root", ".", "directory of the module")
	f.StringVar(&archs, "arch", "amd64,arm64", "architectures, separated by commas")
	f.BoolVar(&o.node, "node", false,
		"also build the archives with the programs of nodes of Kubernetes, as every release has them")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	o.archs = strings.Split(archs, ",")
	switch {
	case f.NArg() > 0 || o.out == "":
		return o, errors.New("--out is required, and there are no arguments")
	case o.version != "" && !versions.MatchString(o.version):
		return o, fmt.Errorf("invalid version %q: want one like v1.2.3", o.version)
	case runtime.GOOS != "linux":
		return o, errors.New("unsupported operating system: builds only on Linux")
	}
	return o, nil
}

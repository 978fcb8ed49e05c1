// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/fumehood/fumehood/internal/author/doctor"
	"github.com/fumehood/fumehood/k8s/internal/node"
	"github.com/fumehood/fumehood/k8s/internal/setup"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// commands are what the operator of a node can do. Each gets its arguments and returns the exit code.
var commands = map[string]func(context.Context, []string) int{"check": check, "configure": configure,
	"install": installVersion, "remove": remove}

// parse reads the arguments of a command, which has flags alone.
func parse(f *flag.FlagSet, about string, args []string) (code int, ok bool) {
	f.Usage = func() {
		fmt.Fprintf(f.Output(), "Usage: containerd-shim-fumehood-v1 %s [flags]\n\n%s\n", f.Name(), about)
		f.PrintDefaults()
	}
	switch err := f.Parse(args); {
	case err == flag.ErrHelp:
		return 0, false
	case err != nil || f.NArg() > 0:
		f.Usage()
		return 2, false
	}
	return 0, true
}

func check(ctx context.Context, args []string) int {
	f := flag.NewFlagSet("check", flag.ContinueOnError)
	asJSON := f.Bool("json", false, "print the checks as JSON")
	if code, ok := parse(f, "Checks whether pods can run with this installation and the node's configuration.\n"+
		"Exit codes: 0 they can, 1 they cannot. fumehood doctor --node checks more.", args); !ok {
		return code
	}
	checks := append(setup.Check(ctx), node.Check(ctx)...)
	write := func() error { return doctor.Write(os.Stdout, checks) }
	if *asJSON {
		write = func() error { return json.NewEncoder(os.Stdout).Encode(checks) }
	}
	if err := write(); err != nil || !doctor.IsReady(checks) {
		return 1
	}
	return 0
}

func installVersion(ctx context.Context, args []string) int {
	f := flag.NewFlagSet("install", flag.ContinueOnError)
	var o setup.Options
	program, _ := os.Executable() // without it, From must be given
	f.StringVar(&o.From, "from", filepath.Dir(program), "the `directory` with the shim and fumehood-runsc")
	f.StringVar(&o.Root, "root", "/", "the `directory` where the node's root is")
	f.StringVar(&o.RunscConfig, "runsc-config", "", "a `file` on the node with options of gVisor's shim")
	if code, ok := parse(f, "Puts this version in "+doctor.Versions+", and into containerd's configuration in "+
		doctor.DropIn+".\n"+
		"Pods that run keep the version that started them.\n\nExample, in a container:\n  containerd-shim-fumehood-v1 install -root /host\n", args); !ok {
		return code
	}
	version, changed, err := setup.Install(ctx, o)
	if err != nil {
		return failed(err)
	}
	fmt.Println("installed " + version)
	if changed {
		fmt.Println(doctor.DropIn + " has changed: restart containerd")
	}
	return 0
}

func configure(ctx context.Context, args []string) int {
	f := flag.NewFlagSet("configure", flag.ContinueOnError)
	from := f.String("from", "/config", "the `directory` with node.toml, bundles and keys, as in "+filepath.Dir(node.File))
	root := f.String("root", "/", "the `directory` where the node's root is")
	if code, ok := parse(f, "Checks a configuration and makes it that of the node: it replaces "+node.File+".\n"+
		"If it is invalid, the node keeps what it has.", args); !ok {
		return code
	}
	if err := node.Configure(ctx, *from, *root); err != nil {
		return failed(err)
	}
	fmt.Println("configured " + node.File)
	return 0
}

func remove(_ context.Context, args []string) int {
	f := flag.NewFlagSet("remove", flag.ContinueOnError)
	root := f.String("root", "/", "the `directory` where the node's root is")
	if code, ok := parse(f, "Removes what install has written, all versions. Drain the node before, and restart containerd afterwards.", args); !ok {
		return code
	}
	if err := setup.Remove(*root); err != nil {
		return failed(err)
	}
	return 0
}

func failed(err error) int {
	f := proposal.FailureOf(err)
	fmt.Fprintf(os.Stderr, "containerd-shim-fumehood-v1: %v\nhint: %s\n", err, f.Hint)
	return 1
}

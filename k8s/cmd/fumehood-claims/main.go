// SPDX-License-Identifier: Apache-2.0

// Command fumehood-claims claims pods for the sessions of fumehood serve, in the same pod: see package
// claims.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"k8s.io/client-go/dynamic"

	"github.com/fumehood/fumehood/k8s/internal/claims"
	"github.com/fumehood/fumehood/k8s/internal/cluster"
	"github.com/fumehood/fumehood/pkg/proposal"
)

type options struct{ config, socket, kubeconfig, owner string }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, flags()); err != nil {
		warn(err)
		os.Exit(1)
	}
}

func flags() (o options) {
	flag.StringVar(&o.config, "config", "/etc/fumehood/claims.toml", "the `file` with tenants: see docs/kubernetes/sessions.md")
	flag.StringVar(&o.socket, "socket", "/run/fumehood/claims.sock",
		"the unix `socket` for fumehood serve --backend kubernetes")
	flag.StringVar(&o.kubeconfig, "kubeconfig", "",
		"a `file` that says how to reach the cluster; without it, the pod's service account does")
	flag.StringVar(&o.owner, "owner", os.Getenv("POD_NAME"),
		"the `name` of this process in the labels of its claims, if the configuration has none")
	flag.Usage = func() {
		fmt.Fprint(flag.CommandLine.Output(),
			"Claims pods for the sessions of fumehood serve, which runs in the same pod.\n\n"+
				"Example:\n  fumehood-claims -kubeconfig admin.conf -config claims.toml -owner fumehood-0\n\nFlags:\n")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	return o
}

// Requests to the API server, for all clients together.
const (
	perSecond = 200
	burst     = 400
)

func run(ctx context.Context, o options) error {
	config, err := claims.ReadConfig(o.config, o.owner)
	if err != nil {
		return err
	}
	api, err := cluster.Config(o.kubeconfig)
	if err != nil {
		return err
	}
	api.QPS, api.Burst = perSecond, burst
	client, err := dynamic.NewForConfig(api)
	if err != nil {
		return err
	}
	s, err := claims.New(ctx, claims.Options{Client: client, Config: config, Grace: time.Minute, Warn: warn})
	if err != nil {
		return err
	}
	return s.Serve(ctx, o.socket)
}

func warn(err error) {
	text := err.Error()
	if f := proposal.FailureOf(err); f != nil && f.Hint != "" {
		text += " (" + f.Hint + ")"
	}
	fmt.Fprintln(os.Stderr, "fumehood-claims: "+text)
}

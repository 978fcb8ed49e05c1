// SPDX-License-Identifier: Apache-2.0

// Command fumehood-node-agent shows in a Kubernetes cluster what the logs of a node's pods say:
// see package agent. It runs on each node, and needs to read the logs and to create events.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"

	"github.com/fumehood/fumehood/internal/agents/health"
	"github.com/fumehood/fumehood/internal/evidence/export"
	"github.com/fumehood/fumehood/internal/evidence/export/otlp"
	"github.com/fumehood/fumehood/k8s/internal/agent"
	"github.com/fumehood/fumehood/k8s/internal/cluster"
	"github.com/fumehood/fumehood/pkg/audit"
)

type options struct {
	logs, kubeconfig, node, listen string
	collector                      otlp.Options
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, flags()); err != nil {
		warn(err)
		os.Exit(1)
	}
}

func flags() (o options) {
	flag.StringVar(&o.logs, "logs", "/var/lib/fumehood/pods",
		"the `directory` of the logs: logs of the node's configuration")
	flag.StringVar(&o.kubeconfig, "kubeconfig", "",
		"a `file` that says how to reach the cluster; without it, the pod's service account does")
	flag.StringVar(&o.node, "node", os.Getenv("NODE_NAME"), "the node's `name`, for events")
	flag.StringVar(&o.listen, "listen", ":9464", "the `address` for GET /metrics and /healthz")
	flag.StringVar(&o.collector.Endpoint, "otlp", "",
		"the `URL` of an OpenTelemetry collector, for metrics and the logs that are sealed")
	flag.BoolVar(&o.collector.Plain, "otlp-plain-unsafe", false,
		"allow plain HTTP to another machine, including headers")
	flag.Func("otlp-header", "`NAME=VARIABLE`: send a header to the collector, whose value is that of an environment variable; may be repeated", func(text string) error {
		h, err := otlp.ParseHeader(text)
		o.collector.Headers = append(o.collector.Headers, h)
		return err
	})
	flag.Usage = func() {
		fmt.Fprint(flag.CommandLine.Output(),
			"Shows the refusals inside a node's pods as events of the pods, and serves metrics.\n\n"+
				"Example:\n  fumehood-node-agent -kubeconfig admin.conf -node worker-1 -listen 127.0.0.1:9464\n\nFlags:\n")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	return o
}

// version is set by the release's linker flags. A build from source has its module version.
var version = ""

func buildVersion() string {
	info, ok := debug.ReadBuildInfo()
	if version == "" && ok {
		return info.Main.Version
	}
	return cmp.Or(version, "unknown")
}

func run(ctx context.Context, o options) error {
	config, err := cluster.Config(o.kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	events := record.NewBroadcaster(record.WithContext(ctx))
	defer events.Shutdown()
	events.StartRecordingToSink(&typed.EventSinkImpl{Interface: client.CoreV1().Events("")})
	m := health.New(buildVersion())
	ended, closeCollector, err := o.collect(ctx, m)
	if err != nil {
		return err
	}
	defer closeCollector()
	if _, err := m.Listen(ctx, o.listen); err != nil {
		return err
	}
	defer m.Serve(func() health.Status { return health.Status{Status: health.StatusReady} })()
	return agent.Run(ctx, agent.Options{Logs: o.logs, Since: time.Now(), Metrics: m, Ended: ended, Warn: warn,
		Events: events.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "fumehood", Host: o.node})})
}

// collect sends metrics to the collector, and returns what sends a log; both do nothing without one.
func (o options) collect(
	ctx context.Context, m *health.Metrics,
) (ended func(context.Context, string) error, end func(), err error) {
	if o.collector.Endpoint == "" {
		return nil, func() {}, nil
	}
	o.collector.Getenv, o.collector.Source = os.Getenv, cmp.Or(o.node, "node")
	x, err := otlp.New(o.collector)
	if err != nil {
		return nil, nil, err
	}
	send := func(ctx context.Context, path string) error {
		return x.SendLog(ctx, path, audit.Trust{}, export.Options{})
	}
	return send, x.StartPush(ctx, m.Gather, warn), nil
}

func warn(err error) { fmt.Fprintln(os.Stderr, "fumehood-node-agent:", err) }

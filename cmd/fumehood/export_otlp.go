// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fumehood/fumehood/pkg/cli"
	"github.com/fumehood/fumehood/pkg/export/otlp"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// otlpFlags name the OpenTelemetry collector that a run is sent to.
type otlpFlags struct {
	flag, describe string // the name and usage of the flag with the collector's URL
	endpoint       string
	headers        cli.List
	plain          bool
}

func (o *otlpFlags) define(cmd *cobra.Command) {
	cli.Group(cmd, "OTLP flags", func(f *pflag.FlagSet) {
		f.StringVar(&o.endpoint, o.flag, "", o.describe)
		f.Var(&o.headers, "otlp-header", "`NAME=VARIABLE` send a header to the collector, whose value is that of an environment variable; may be repeated")
		f.BoolVar(&o.plain, "otlp-plain-unsafe", false, "allow plain HTTP to another machine, including headers")
	})
	cli.NoFiles(cmd, o.flag, "otlp-header")
}

func (o *otlpFlags) given() bool { return o.endpoint != "" || len(o.headers) > 0 || o.plain }

// exporter returns nil if no collector was named.
func (o *otlpFlags) exporter() (*otlp.Exporter, error) {
	if o.endpoint == "" {
		if o.given() {
			return nil, &proposal.StopError{Code: "otlp.endpoint", Message: "--otlp-header and --otlp-plain-unsafe need a collector", Hint: "name it with --otlp URL"}
		}
		return nil, nil
	}
	options := otlp.Options{Endpoint: o.endpoint, Plain: o.plain, Getenv: os.Getenv, TraceParent: os.Getenv("TRACEPARENT"), Version: fumehoodVersion()}
	for _, text := range o.headers {
		h, err := otlp.ParseHeader(text)
		if err != nil {
			return nil, err
		}
		options.Headers = append(options.Headers, h)
	}
	return otlp.New(options)
}

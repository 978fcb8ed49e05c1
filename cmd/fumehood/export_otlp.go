// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"flag"
	"os"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli"
	"github.com/fumehood/fumehood/pkg/export/otlp"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// An otlpFlags is where flags say that a run is sent to.
type otlpFlags struct {
	endpoint string
	headers  cli.List
	plain    bool
}

func (o *otlpFlags) define(f *flag.FlagSet) {
	f.Var(&o.headers, "otlp-header", "send this header to the collector with the value of an environment variable: `NAME=VARIABLE`; may be repeated")
	f.BoolVar(&o.plain, "otlp-plain-unsafe", false, "send to another machine over plain HTTP, headers too")
}

func (o *otlpFlags) given() bool { return o.endpoint != "" || len(o.headers) > 0 || o.plain }

// exporter is nil when no collector was named.
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

// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/fumehood/fumehood/pkg/proposal"
	"github.com/fumehood/fumehood/pkg/record"
	"github.com/fumehood/fumehood/pkg/record/otlp"
)

// An otlpFlags is where flags say that a run is sent to.
type otlpFlags struct {
	endpoint string
	headers  list
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

// misuseOf is misuse with the hint of err.
func (c *call) misuseOf(err error) int {
	f := proposal.FailureOf(err)
	fmt.Fprintf(c.stderr, "fumehood: %s: %s\n", f.Code, printable(f.Message))
	if f.Hint != "" {
		fmt.Fprintf(c.stderr, "fumehood: hint: %s\n", printable(f.Hint))
	}
	return exitUsage
}

// stopping is how long sending may take once somebody wants the process to end.
const stopping = 2 * time.Second

// sendRun sends, for a bounded time, even when the run was interrupted.
func (c *call) sendRun(exporter *otlp.Exporter, story record.Story, b *otlp.Batch) error {
	patience := otlp.Patience
	if c.ctx.Err() != nil {
		patience = stopping
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), patience)
	defer cancel()
	return exporter.Send(ctx, story, b)
}

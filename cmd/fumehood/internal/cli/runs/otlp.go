// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli"
	"github.com/fumehood/fumehood/internal/evidence/export/otlp"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A Collector has the flags that name the OpenTelemetry collector that a run is sent to.
type Collector struct {
	Flag, Describe string // the name and usage of the flag with the collector's URL
	Endpoint       string
	headers        cli.List
	plain          bool
}

// Define adds the flags.
func (o *Collector) Define(cmd *cobra.Command) {
	cli.DefineGroup(cmd, "OTLP flags", func(f *pflag.FlagSet) {
		f.StringVar(&o.Endpoint, o.Flag, "", o.Describe)
		f.Var(&o.headers, "otlp-header",
			"`NAME=VARIABLE` send a header to the collector, whose value is that of an environment variable; may be repeated")
		f.BoolVar(&o.plain, "otlp-plain-unsafe", false, "allow plain HTTP to another machine, including headers")
	})
	cli.NoFiles(cmd, o.Flag, "otlp-header")
}

// IsSet reports whether one of the flags is used.
func (o *Collector) IsSet() bool { return o.Endpoint != "" || len(o.headers) > 0 || o.plain }

// NewExporter returns nil if no collector was named.
func (o *Collector) NewExporter(version string) (*otlp.Exporter, error) {
	if o.Endpoint == "" {
		if o.IsSet() {
			return nil, &proposal.StopError{Code: "otlp.endpoint",
				Message: "--otlp-header and --otlp-plain-unsafe need a collector", Hint: "name it with --otlp URL"}
		}
		return nil, nil
	}
	options := otlp.Options{Endpoint: o.Endpoint, Plain: o.plain, Getenv: os.Getenv,
		TraceParent: os.Getenv("TRACEPARENT"), Version: version}
	for _, text := range o.headers {
		h, err := otlp.ParseHeader(text)
		if err != nil {
			return nil, err
		}
		options.Headers = append(options.Headers, h)
	}
	return otlp.New(options)
}

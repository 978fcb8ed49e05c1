// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli"
	"github.com/fumehood/fumehood/internal/evidence/export"
	"github.com/fumehood/fumehood/internal/evidence/export/otlp"
	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// exportFlags say where a finished run is exported to.
type exportFlags struct {
	decisions string
	collector Collector
	exporter  *otlp.Exporter
}

func (s *exportFlags) defineFlags(cmd *cobra.Command) {
	s.collector.Flag, s.collector.Describe = "otlp",
		"`URL` send the run to this OpenTelemetry collector; failure is only a warning"
	s.collector.Define(cmd)
	cli.DefineGroup(cmd, "Report flags", func(f *pflag.FlagSet) {
		f.StringVar(&s.decisions, "decisions", "",
			"`FILE` also write every decision to this file, one JSON document per line, as fumehood export does")
	})
}

// checkFlags finds invalid flags before anything runs.
func (s *exportFlags) checkFlags(version string) (err error) {
	s.exporter, err = s.collector.NewExporter(version)
	return err
}

// exportTo exports a finished run from its log, which is verified like one from elsewhere.
// Only decisions that cannot be written are an error.
func (s *exportFlags) exportTo(c *cli.Invocation, path string, a *proposal.Audit) (err error) {
	trust, o := audit.Trust{Key: a.Key, Checkpoint: a.Checkpoint}, export.Options{TraceParent: os.Getenv("TRACEPARENT")}
	if s.decisions != "" {
		err = export.WriteLog(s.decisions, path, trust, o)
	}
	if s.exporter != nil {
		if unsent := s.exporter.SendLog(c.Ctx, path, trust, o); unsent != nil {
			c.WarnOf(unsent)
		}
	}
	return err
}

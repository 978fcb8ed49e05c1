// SPDX-License-Identifier: Apache-2.0

// This program in another module runs a command of the repository in its directory.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

func main() {
	g, err := gate.New(context.Background(), gate.Options{})
	if err == nil {
		defer g.Close()
		p := proposal.Plan{Proposals: []proposal.Proposal{{ID: "test", Run: os.Args[1]}}}
		report, _ := g.Run(context.Background(), p)
		fmt.Println(report.Totals, report.Error)
	}
}

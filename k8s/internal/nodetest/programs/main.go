// SPDX-License-Identifier: Apache-2.0

// Command programs writes the programs of a nodetest.Node into a directory, for a machine without Go:
//
//	programs DIR
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/fumehood/fumehood/k8s/internal/nodetest"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: programs DIR")
		os.Exit(2)
	}
	if err := nodetest.Build(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

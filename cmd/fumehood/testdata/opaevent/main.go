// SPDX-License-Identifier: Apache-2.0

// Command opaevent decodes lines of JSON from standard input as events of OPA's decision
// log, with OPA's own type, and writes each again as OPA does. A line with a field that
// OPA does not know, or that OPA cannot use, ends it.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"

	"github.com/open-policy-agent/opa/v1/plugins/logs"
)

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	out := json.NewEncoder(os.Stdout)
	for n := 1; lines.Scan(); n++ {
		var event logs.EventV1
		d := json.NewDecoder(bytes.NewReader(lines.Bytes()))
		d.DisallowUnknownFields()
		err := d.Decode(&event)
		if err == nil {
			_, err = event.AST() // what mask and drop rules see
		}
		if err == nil {
			err = out.Encode(event)
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "line %d: %v\n", n, err)
			os.Exit(1)
		}
	}
	if err := lines.Err(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"context"
	"fmt"
	"log"

	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/plan"
	"github.com/fumehood/fumehood/pkg/proposal"
)

const document = `
schema: fumehood.plan/v1
proposals:
  - {id: hidden, run: python3 -c 'exec(__import__("base64").b64decode("cHJpbnQoMSk="))'}
  - {id: native, run: python3 -c 'import ctypes; ctypes.CDLL("libc.so.6").system(b"id")'}
  - {id: fetch, run: ./task fetch}
  - {id: leak, run: ./task leak}
`

// Run a plan. Two proposals are denied before anything runs. In the third, the script and git may
// start, but not the program by which git reaches the network. In the output of the fourth, the key is redacted.
func ExampleGate_Run() {
	ctx := context.Background()
	p, problems := plan.Decode([]byte(document), "plan.yaml")
	if len(problems) > 0 {
		log.Fatal(plan.Describe("plan.yaml", problems[0]))
	}
	g, err := gate.New(ctx, gate.Options{Workspace: "testdata/project"})
	if err != nil {
		log.Fatal(err)
	}
	defer g.Close()
	report, err := g.Run(ctx, p)
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range report.Records {
		fmt.Println(r.Proposal.ID, r.Decision.Effect)
		if r.Result != nil {
			fmt.Printf("exit %d, %d refused\n%s", r.Result.ExitCode, r.Result.Observations.Counts.Refused, r.Result.Stdout.Head)
		}
	}
	// Output:
	// hidden deny
	// native deny
	// fetch allow
	// exit 128, 1 refused
	// leak allow
	// exit 0, 0 refused
	// [redacted github-pat]
}

// A session: proposals that come one after the other. Files that a command leaves
// in the workspace are there for the next.
func ExampleGate_Open() {
	ctx := context.Background()
	g, err := gate.New(ctx, gate.Options{Workspace: "testdata/project"})
	if err != nil {
		log.Fatal(err)
	}
	defer g.Close()
	s, err := g.Open(ctx, gate.SessionOptions{})
	if err != nil {
		log.Fatal(err)
	}
	for i, text := range []string{"echo 42 > answer", "cat answer", "curl https://example.com"} {
		r, err := s.Do(ctx, proposal.Proposal{ID: fmt.Sprint("step-", i), Run: text})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(text, "→", r.Decision.Effect)
		if r.Result != nil {
			fmt.Print(string(r.Result.Stdout.Head))
		}
	}
	report, err := s.Close()
	fmt.Println(report.Totals.Succeeded, "succeeded,", report.Totals.Denied, "denied,", err)
	// Output:
	// echo 42 > answer → allow
	// cat answer → allow
	// 42
	// curl https://example.com → deny
	// 2 succeeded, 1 denied, <nil>
}

// Decide only. This needs neither root nor a sandbox.
func ExampleGate_Check() {
	ctx := context.Background()
	p, problems := plan.Decode([]byte(document), "plan.yaml")
	if len(problems) > 0 {
		log.Fatal(plan.Describe("plan.yaml", problems[0]))
	}
	g, err := gate.New(ctx, gate.Options{DecideOnly: true})
	if err != nil {
		log.Fatal(err)
	}
	defer g.Close()
	records, err := g.Check(ctx, p)
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range records {
		fmt.Println(r.Proposal.ID, r.Decision.Effect)
	}
	// Output:
	// hidden deny
	// native deny
	// fetch allow
	// leak allow
}

// Add a policy directory. It may deny, ask and lower limits, but not allow more.
func ExampleOptions_policies() {
	ctx := context.Background()
	own, err := gate.ReadPolicy(ctx, "testdata/policy", gate.PolicyOptions{})
	if err != nil {
		log.Fatal(err)
	}
	g, err := gate.New(ctx, gate.Options{DecideOnly: true, Policies: []gate.Policy{own}})
	if err != nil {
		log.Fatal(err)
	}
	defer g.Close()
	p, _ := plan.Decode([]byte(document), "plan.yaml")
	records, err := g.Check(ctx, p)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(records[2].Decision.Effect, records[2].Decision.Reasons[0].Message)
	// Output: deny the script is not used here
}

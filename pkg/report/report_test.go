// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"bytes"
	"fmt"
	"log"
	"os"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/pkg/report"
)

// Show a report that another program wrote.
func ExampleOpen() {
	r, err := report.Open("../../testdata/report/all_ok.json")
	if err != nil {
		log.Fatal(err)
	}
	first, _, _ := strings.Cut(report.Text(r), "\n")
	fmt.Println(first)
	for _, record := range r.Records {
		fmt.Println(record.Proposal.ID, record.Outcome())
	}
	// Output:
	// fumehood: 3 succeeded
	// unit succeeded
	// vet succeeded
	// plot succeeded
}

// Each function returns what the commands and the action write.
func TestForms(t *testing.T) {
	document, err := os.ReadFile("../../testdata/report/all_ok.json")
	if err != nil {
		t.Fatal(err)
	}
	comment, err := os.ReadFile("../../testdata/report/all_ok.md")
	if err != nil {
		t.Fatal(err)
	}
	r, err := report.Read(document, len(document))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := report.Read(document, len(document)-1); err == nil {
		t.Error("a document above the maximum is read")
	}
	if again, err := report.JSON(r); err != nil || !bytes.Equal(again, document) {
		t.Errorf("the document changes when it is read and written: %v", err)
	}
	if report.Markdown(r) != string(comment) {
		t.Error("the comment is not the golden one")
	}
	var sarif, junit bytes.Buffer
	if err := report.SARIF(&sarif, r, nil); err != nil || !strings.Contains(sarif.String(), "2.1.0") {
		t.Errorf("SARIF: %v", err)
	}
	if err := report.JUnit(&junit, r); err != nil || strings.Count(junit.String(), "<testcase") != len(r.Records) {
		t.Errorf("JUnit: %v", err)
	}
	if list, more := report.Annotations(r, []string{"a.go"}); len(list)+more != 0 {
		t.Errorf("annotations of commands that succeeded: %v, %d", list, more)
	}
}

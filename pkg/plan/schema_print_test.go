// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"github.com/fumehood/fumehood/internal/kit/document/schematest"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// The ids of the published schemas.
const (
	SchemaID         = "https://github.com/fumehood/fumehood/raw/main/testdata/schema/fumehood.plan.v1.json"
	CasesSchemaID    = "https://github.com/fumehood/fumehood/raw/main/testdata/schema/fumehood.cases.v1.json"
	FindingsSchemaID = "https://github.com/fumehood/fumehood/raw/main/testdata/schema/fumehood.findings.v1.json"
)

// Schema returns the JSON Schema (2020-12) of plans, generated from the table
// that Decode uses. It is the file testdata/schema/fumehood.plan.v1.json.
//
// It accepts every plan that Decode accepts. It also accepts what a schema cannot
// express: it counts bytes as characters, and does not check for repeated names,
// repeated ids, the targets of needs, and fields that contradict each other.
func Schema() []byte {
	return schematest.Print(&planShape, SchemaID, proposal.PlanSchema,
		"A plan: what an AI proposes to run. Decode checks more than a schema can: lengths are in bytes, ids are unique, needs name earlier ids.")
}

// CasesSchema returns the JSON Schema (2020-12) of cases, printed from the table that
// DecodeCases uses. It is the file testdata/schema/fumehood.cases.v1.json.
func CasesSchema() []byte {
	return schematest.Print(&casesShape, CasesSchemaID, proposal.CasesSchema,
		"Test cases of a policy. DecodeCases checks more than a schema can: names are unique, and each case has one thing to decide.")
}

// FindingsSchema returns the JSON Schema (2020-12) of findings, printed from the table that
// DecodeFindings uses. It is the file testdata/schema/fumehood.findings.v1.json.
func FindingsSchema() []byte {
	return schematest.Print(&findingsShape, FindingsSchemaID, proposal.FindingsSchema,
		"What a reviewer claims about a pull request. DecodeFindings checks more than a schema can: ids are unique, and a reproducer has one form.")
}

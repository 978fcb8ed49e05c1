// SPDX-License-Identifier: Apache-2.0

package plan

// ProposesNothing reports whether data is a plan with no proposals and nothing else wrong. Decode
// refuses it: someone who writes a plan wants to run something. A reviewer may have nothing to propose.
func ProposesNothing(data []byte, name string) bool {
	var ps problems
	proposals := readPlan(data, name, &ps).Get("proposals")
	return len(ps.List) == 1 && ps.List[0].Path == "proposals" && proposals != nil && proposals.Kind == list &&
		len(proposals.Items) == 0
}

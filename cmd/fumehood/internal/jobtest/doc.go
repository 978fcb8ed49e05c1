// SPDX-License-Identifier: Apache-2.0

// Package jobtest has a GitHub with one pull request, and runs steps of jobs on it: in this process,
// or in one of their own where the process is what is tested.
package jobtest

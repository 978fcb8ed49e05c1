// SPDX-License-Identifier: Apache-2.0

// Package points has the inputs and answers of policy's decision points that are in no plan,
// report or log, and what they have in common.
package points

// SPDX-License-Identifier: Apache-2.0

//go:build !e2e

package sample

const whole = false

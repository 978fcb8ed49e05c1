// SPDX-License-Identifier: Apache-2.0

//go:build !nightly

package sample

const whole = false

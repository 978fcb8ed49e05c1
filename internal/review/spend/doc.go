// SPDX-License-Identifier: Apache-2.0

// Package spend keeps what requests to models may cost.
//
// A Budget reserves, before a request is sent, the most that it can cost, and refuses it if a
// limit would be exceeded by one token or the smallest part of a dollar: the limit of this
// review, of all reviews of one subject (a pull request), or of all reviews of one day (UTC).
// Afterwards the reservation is replaced by what the provider reports. If it reports nothing,
// or the request broke off, the reservation stays.
//
// The totals of subjects and days are in a Ledger, a file that processes lock while they use
// it. A reservation is on disk before the request is sent, so that a process that is killed
// has spent it. A ledger that cannot be read stops the review.
//
// The accounting is in tokens as the provider counts them and in the prices of a dated table.
// It does not know discounts, taxes, or prices that changed after the table's date. A provider
// that reports more than was reserved is an error, and what it reports is counted.
package spend

//go:build race

package privacy_test

// Under the race detector the audits are shorter, and see less; every planted
// fault is caught all the same.
const (
	auditRuns  = 100_000
	auditSlow  = 12_000
	auditShare = 0.1
)

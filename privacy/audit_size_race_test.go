//go:build race

package privacy_test

// Under the race detector the audits are shorter, and see less; every planted
// fault is caught all the same.
const (
	auditRuns  = 100_000
	auditSlow  = 25_000 // at 12 000 one seed of thirty finds less than half of what is there
	auditShare = 0.1
)

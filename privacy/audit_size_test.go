//go:build !race

package privacy_test

// How long the audits are: releases of each of two neighbours, also of the
// slower kinds, and the share of its noise that cannot be missing without a
// whole ROC curve showing it.
const (
	auditRuns  = 200_000
	auditSlow  = 25_000
	auditShare = 0.05
)

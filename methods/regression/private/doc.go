// Package private is logistic regression under differential privacy with nothing to tune,
// and a posterior whose intervals count the noise.
//
// Four kinds of noised sums are all that sites release: histograms of numbers twice, unless the plan
// has constants, which tell the units of all that follows (units.go, laws.go), totals and squares of columns
// once, their products once, and so many clipped gradients. From them, and for nothing
// more, the coordinator corrects what clipping does to gradients (curvature.go), steps by
// a Hessian (gram.go, curvature.go), and says how unsure the weights are (fit.go).
package private

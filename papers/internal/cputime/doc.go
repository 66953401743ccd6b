// Package cputime tells how long processors have worked for this process, of which
// experiments and measurements print the cost of what they measure.
package cputime

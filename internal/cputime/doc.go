// Package cputime tells how long processors have worked for this process, of which
// the measuring programs under tools print the cost of what they measure.
package cputime
